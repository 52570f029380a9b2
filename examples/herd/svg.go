package main

import (
	"bytes"
	"fmt"
	"html"
	"time"
)

// The measures of the picture, in pixels.
const (
	margin      = 24
	labelWidth  = 250
	plotWidth   = 720 // whatever the span
	plotHeight  = 54
	panelHeight = plotHeight + 18
	titleHeight = 44
	axisHeight  = 22
)

// picture draws how many requests reach the server in every 100 ms, one panel for each way. The panels of a scene have one scale,
// that of its highest peak: what the helpers flatten is flat.
func picture(results []result) []byte {
	var out bytes.Buffer
	y := margin
	for i, r := range results {
		first := i == 0 || results[i-1].scene.title != r.scene.title
		last := i == len(results)-1 || results[i+1].scene.title != r.scene.title
		if first {
			text(&out, margin, y+titleHeight-16, "title", "start", r.scene.title)
			y += titleHeight
		}
		panel(&out, y, r, scale(results, r.scene.title))
		y += panelHeight
		if last {
			axis(&out, y-panelHeight+plotHeight, r.scene.span)
			y += axisHeight
		}
	}
	return document(out.Bytes(), margin+labelWidth+plotWidth+margin, y+margin)
}

// scale is the highest peak of a scene.
func scale(results []result, title string) int {
	most := 1
	for _, r := range results {
		if r.scene.title == title {
			most = max(most, r.peak())
		}
	}
	return most
}

// document puts a frame around what was drawn. Its colours follow the reader's light or dark setting.
func document(body []byte, width, height int) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title>Requests per 100 ms of %d hosts, with and without jitter</title>\n", hosts)
	out.WriteString(`<style>
  .ground { fill: #ffffff } .bars { stroke: #1f6feb } .line { stroke: #8c959f } text { fill: #1f2328; font: 13px sans-serif }
  .title { font-weight: bold; font-size: 15px } .small { font-size: 11px }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .bars { stroke: #58a6ff } .line { stroke: #6e7681 } text { fill: #e6edf3 }
  }
</style>
`)
	fmt.Fprintf(&out, `<rect class="ground" width="%d" height="%d"/>`+"\n", width, height)
	out.Write(body)
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// panel draws one way: its name and peak on the left, a column for every bin that is not empty on the right.
func panel(out *bytes.Buffer, y int, r result, most int) {
	base := y + plotHeight
	text(out, margin, y+22, "", "start", r.way.name)
	text(out, margin, y+40, "small", "start", fmt.Sprintf("at most %d in 100 ms", r.peak()))
	left := margin + labelWidth
	fmt.Fprintf(out, `<path class="line" fill="none" d="M%d %dh%d"/>`+"\n", left, base, plotWidth)
	width := float64(plotWidth) / float64(len(r.count))
	// A bin of an hour is a fiftieth of a pixel: no column is thinner than a pixel.
	fmt.Fprintf(out, `<path class="bars" fill="none" stroke-width="%.3f" d="`, max(width, 1))
	for i, n := range r.count {
		if n > 0 {
			fmt.Fprintf(out, "M%.2f %dv-%.2f", float64(left)+(float64(i)+0.5)*width, base, float64(n)*plotHeight/float64(most))
		}
	}
	out.WriteString(`"/>` + "\n")
}

// axis writes the time under the last panel of a scene.
func axis(out *bytes.Buffer, y int, span time.Duration) {
	const marks = 6
	for i := range marks + 1 {
		x := margin + labelWidth + plotWidth*i/marks
		fmt.Fprintf(out, `<path class="line" d="M%d %dv4"/>`+"\n", x, y)
		text(out, x, y+16, "small", "middle", label(span*time.Duration(i)/marks))
	}
}

// label is a time as short as it can be read.
func label(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func text(out *bytes.Buffer, x, y int, class, anchor, s string) {
	fmt.Fprintf(out, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(s))
}

package main

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"slices"
	"time"
)

// The measures of the chart, in pixels.
const (
	chartLeft   = 70
	chartTop    = 50
	chartWidth  = 640
	chartHeight = 300
	legendWidth = 300
	legendLine  = 20
)

// chart draws how many messages each address has, over time. Lines that lie upon each other are a good balance.
func chart(title string, samples []sample) []byte {
	names := chartNames(samples)
	var span time.Duration
	var most uint64 = 1
	for _, s := range samples {
		span = max(span, s.at)
		for _, n := range s.counts {
			most = max(most, n)
		}
	}
	height := chartTop + max(chartHeight, len(names)*legendLine) + 50
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img">`+"\n", chartLeft+chartWidth+legendWidth, height)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(title))
	// The colours follow the reader's light or dark setting.
	out.WriteString(`<style>
  .ground { fill: #ffffff } .line { stroke: #8c959f; fill: none } text { fill: #1f2328; font: 12px sans-serif }
  .title { font-weight: bold; font-size: 15px }
  @media (prefers-color-scheme: dark) { .ground { fill: #0d1117 } .line { stroke: #6e7681 } text { fill: #e6edf3 } }
</style>
`)
	fmt.Fprintf(&out, `<rect class="ground" width="%d" height="%d"/>`+"\n", chartLeft+chartWidth+legendWidth, height)
	fmt.Fprintf(&out, `<text class="title" x="%d" y="28">%s</text>`+"\n", chartLeft, html.EscapeString(title))
	axes(&out, span, most)
	for i, name := range names {
		line(&out, i, name, samples, span, most)
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// chartNames are all addresses that any sample has.
func chartNames(samples []sample) []string {
	all := make(map[string]uint64)
	for _, s := range samples {
		maps.Copy(all, s.counts)
	}
	return slices.Sorted(maps.Keys(all))
}

// axes draws time and messages.
func axes(out *bytes.Buffer, span time.Duration, most uint64) {
	const marks = 4
	base := chartTop + chartHeight
	fmt.Fprintf(out, `<path class="line" d="M%d %dV%dh%d"/>`+"\n", chartLeft, chartTop, base, chartWidth)
	for i := range marks + 1 {
		x, y := chartLeft+chartWidth*i/marks, base-chartHeight*i/marks
		fmt.Fprintf(out, `<path class="line" d="M%d %dv4M%d %dh-4"/>`+"\n", x, base, chartLeft, y)
		fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="middle">%.3g s</text>`+"\n", x, base+18, span.Seconds()*float64(i)/marks)
		fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end">%d</text>`+"\n", chartLeft-8, y+4, most*uint64(i)/marks)
	}
	fmt.Fprintf(out, `<text x="%d" y="%d">messages</text>`+"\n", chartLeft-56, chartTop-12)
}

// line draws one address and its place in the legend.
func line(out *bytes.Buffer, i int, name string, samples []sample, span time.Duration, most uint64) {
	// The golden angle keeps the colours of neighbours apart, however many there are. Dashes tell lines that cover each other.
	colour := fmt.Sprintf("hsl(%d 70%% 50%%)", i*137%360)
	style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%d %d"`, colour, 8, 4*(i%3))
	fmt.Fprintf(out, `<polyline %s points="`, style)
	var last uint64
	for _, s := range samples {
		last = s.counts[name]
		x := chartLeft + chartWidth*s.at.Seconds()/max(span.Seconds(), 1e-9)
		fmt.Fprintf(out, "%.1f,%.1f ", x, chartTop+chartHeight-chartHeight*float64(last)/float64(most))
	}
	out.WriteString(`"/>` + "\n")
	x, y := chartLeft+chartWidth+24, chartTop+legendLine*i
	fmt.Fprintf(out, `<path %s d="M%d %dh24"/>`+"\n", style, x, y)
	fmt.Fprintf(out, `<text x="%d" y="%d">%s  %d</text>`+"\n", x+32, y+4, html.EscapeString(name), last)
}

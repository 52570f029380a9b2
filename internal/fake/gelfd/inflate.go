package gelfd

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

// maxInflated is where the server cuts an inflated text. It does not refuse it there: the rest of the JSON is missing.
const maxInflated = 8 << 20

// Kind is the form of a payload.
type Kind string

// The forms of payloads.
const (
	Plain Kind = "plain"
	Gzip  Kind = "gzip"
	Zlib  Kind = "zlib"
)

// KindOf judges a payload by its first two bytes, as the server does. A zlib stream counts only with the 32 KiB window (78) and
// a valid check of its header. Whatever starts with none of the three marks is taken for JSON, zstd and raw deflate included.
func KindOf(payload []byte) (Kind, error) {
	if len(payload) < 2 {
		return "", reject(BadType, "%d bytes", len(payload))
	}
	first, second := payload[0], payload[1]
	switch first {
	case 0x78:
		if (0x7800+int(second))%31 == 0 {
			return Zlib, nil
		}
	case 0x1f:
		if second == 0x8b {
			return Gzip, nil
		}
	case 0x1e: // a chunk; where payloads are judged, none may come any more
	default:
		return Plain, nil
	}
	return "", reject(BadType, "starts with %02x %02x", first, second)
}

// inflate returns the text of a payload, cut at maxInflated.
func inflate(payload []byte) (text []byte, kind Kind, err error) {
	kind, err = KindOf(payload)
	if err != nil {
		return nil, "", err
	}
	switch kind {
	case Gzip:
		text, err = gunzip(payload)
	case Zlib:
		var r io.ReadCloser
		if r, err = zlib.NewReader(bytes.NewReader(payload)); err == nil {
			text, err = io.ReadAll(io.LimitReader(r, maxInflated))
		}
	default:
		return payload, kind, nil
	}
	if err != nil {
		return nil, kind, reject(BadInflate, "%v", err)
	}
	return text, kind, nil
}

// gunzip reads all members. What follows the last one and is no member is ignored, as Java's reader does and Go's does not.
func gunzip(payload []byte) ([]byte, error) {
	br := bufio.NewReader(bytes.NewReader(payload))
	r, err := gzip.NewReader(br)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for {
		r.Multistream(false)
		if _, err := text.ReadFrom(io.LimitReader(r, int64(maxInflated-text.Len()))); err != nil {
			return nil, err
		}
		err := r.Reset(br)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) || text.Len() == maxInflated {
			return text.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

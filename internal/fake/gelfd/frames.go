package gelfd

import (
	"bytes"
	"errors"
)

var (
	errLongFrame  = errors.New("gelfd: the frame is too long")
	errShortFrame = errors.New("gelfd: the frame is empty or one byte long")
)

// framer cuts a stream into frames that end with NUL. An error means that the connection is closed; what comes behind is lost.
type framer struct {
	max  int
	part []byte // of a frame without its end so far
}

// add takes the next bytes of the stream and calls take for every frame that they complete. A frame is valid during the call.
func (f *framer) add(p []byte, take func(frame []byte)) error {
	for {
		i := bytes.IndexByte(p, 0)
		if i < 0 {
			f.part = append(f.part, p...)
			if len(f.part) > f.max { // the decoder does not wait for the end
				return errLongFrame
			}
			return nil
		}
		frame := p[:i]
		if len(f.part) > 0 {
			f.part = append(f.part, frame...)
			frame = f.part
		}
		if len(frame) > f.max {
			return errLongFrame
		}
		if len(frame) < 2 {
			return errShortFrame
		}
		take(frame)
		f.part, p = f.part[:0], p[i+1:]
	}
}

// end takes the end of the stream: what stands before it is a frame too.
func (f *framer) end(take func(frame []byte)) error {
	switch len(f.part) {
	case 0:
		return nil
	case 1:
		return errShortFrame
	}
	take(f.part)
	f.part = nil
	return nil
}

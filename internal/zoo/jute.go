package zoo

import "encoding/binary"

// A writer encodes a message: numbers are big endian, texts begin with their length.
type writer struct{ buf []byte }

func (w *writer) int(n int32)  { w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(n)) }
func (w *writer) long(n int64) { w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(n)) }

func (w *writer) bool(b bool) {
	if b {
		w.buf = append(w.buf, 1)
	} else {
		w.buf = append(w.buf, 0)
	}
}

func (w *writer) text(s string) {
	w.int(int32(len(s)))
	w.buf = append(w.buf, s...)
}

// A reader decodes a message. Once the message is too short, every value is zero and short
// is set.
type reader struct {
	buf   []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.buf) {
		r.buf, r.short = nil, true
		return nil
	}
	taken := r.buf[:n]
	r.buf = r.buf[n:]
	return taken
}

func (r *reader) int() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) long() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// text reads a text. A length below zero means no text.
func (r *reader) text() string {
	n := r.int()
	if n <= 0 {
		return ""
	}
	return string(r.take(int(n)))
}

func (r *reader) texts() []string {
	n := int(r.int())
	if n < 0 || n > len(r.buf)/4 { // a text has at least its length
		r.short = r.short || n > 0
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = r.text()
	}
	return all
}

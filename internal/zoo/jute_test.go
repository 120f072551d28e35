package zoo

import (
	"slices"
	"testing"
)

// FuzzReader takes apart whatever a server may send.
func FuzzReader(f *testing.F) {
	var w writer
	w.int(2)
	w.text("a")
	w.text("node")
	f.Add(w.buf)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 'x'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		c := Call{op: opMulti, done: make(chan struct{})}
		c.finish(message, nil)
		c.Children()
		c.Data()
		c.Stat()
		c.complete(message)
	})
}

func TestReader(t *testing.T) {
	var w writer
	w.int(2)
	w.text("a")
	w.text("")
	w.bool(true)
	w.long(-7)
	r := reader{buf: w.buf}
	if got := r.texts(); !slices.Equal(got, []string{"a", ""}) {
		t.Errorf("read the texts %q", got)
	}
	if !r.bool() || r.long() != -7 || r.short {
		t.Errorf("misread %v", w.buf)
	}
	if r.int(); !r.short {
		t.Error("read more than there was")
	}
}

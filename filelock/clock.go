package filelock

import (
	"crypto/sha256"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A clockID names the clock that times in a record were read from. Two
// processes with the same one can compare their times.
type clockID [16]byte

func nameClock(parts ...string) clockID {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return clockID(h.Sum(nil)[:16])
}

func now() book.Moment {
	t := time.Now()
	return book.Moment{Now: lease(t), Wall: t.UnixMicro()}
}

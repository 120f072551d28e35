package filelock

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A clockID names the clock behind the times in a record. Two processes with the same
// clockID can compare their times.
type clockID [16]byte

var ownClock = sync.OnceValue(func() clockID {
	name, _ := boottime.Machine()
	sum := sha256.Sum256([]byte(name))
	return clockID(sum[:16])
})

// now is by the machine's clock and by Options.Clock.
func (s *Store) now() book.Moment {
	return book.Moment{Now: boottime.SinceBoot(time.Now()), Wall: s.opts.Clock().UnixMicro()}
}

// here is the anchor of this moment.
func (s *Store) here() anchor { return anchor{ownClock(), s.now()} }

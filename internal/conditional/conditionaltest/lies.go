package conditionaltest

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

// Lies are the conditions of writes that a service accepts and ignores, as some services do. The
// servers of tests that lie embed Lies.
type Lies struct {
	Creates  bool // a record that is there
	Replaces bool // a record of another version
	Revives  bool // a record that is not there, though a version is expected
}

// Writes reports whether the service carries out a write. create says that the write expects no
// record, found that there is a record, same that the record has the expected version.
func (l Lies) Writes(create, found, same bool) bool {
	switch {
	case create:
		return !found || l.Creates
	case !found:
		return l.Revives
	default:
		return same || l.Replaces
	}
}

// Refused has Open refuse a service that lies. The error names each broken promise, and no other.
// start starts a service and returns its URL. record is a record in the words of the store, with
// its article.
func Refused(t *testing.T, record string, start func(Lies) string) {
	for _, l := range []Lies{{Creates: true, Replaces: true, Revives: true}, {Creates: true}, {Replaces: true}, {Revives: true}, {}} {
		at := start(l)
		for range 2 { // The second time, the records of the first are there.
			s, err := Open(t, at)
			if err == nil {
				s.Close()
			}
			if lies := l != (Lies{}); lies != errors.Is(err, driver.ErrInvalid) || !lies && err != nil {
				t.Errorf("%+v: %v", l, err)
			}
			for text, broken := range map[string]bool{
				"created " + record + " that was there":            l.Creates,
				"replaced " + record + " that had another version": l.Replaces,
				"replaced " + record + " that was not there":       l.Revives,
			} {
				if err != nil && broken != strings.Contains(err.Error(), text) {
					t.Errorf("the service breaks %q: %v, and Open returned %v", text, broken, err)
				}
			}
		}
	}
}

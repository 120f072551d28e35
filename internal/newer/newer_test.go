package newer

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

func TestCheck(t *testing.T) {
	if err := Check("a", 1, 1, Passes); err != nil {
		t.Error(err)
	}
	err := Check("a b", 2, 1, Passes)
	const want = `the record of key "a b" has format 2, and this release knows format 1: upgrade this program, or wait until no newer release holds the key`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
	for _, target := range []error{driver.ErrInvalid, driver.ErrUnwritten} {
		if !errors.Is(err, target) {
			t.Errorf("%v does not match %v", err, target)
		}
	}
	if doubt := Doubtful(err); !errors.Is(doubt, driver.ErrInvalid) || errors.Is(doubt, driver.ErrUnwritten) {
		t.Errorf("after a write: %v", doubt)
	}
	if errors.Is(err, driver.ErrLost) {
		t.Errorf("%v matches ErrLost, and the claim may stand", err)
	}
}

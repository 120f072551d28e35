package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

// A silent listener has reached its own limit for connecting.
type silent struct{}

func (silent) To() string   { return "" }
func (silent) Close() error { return nil }
func (silent) Listen(context.Context, func(string) bool) error {
	return fmt.Errorf("failed SASL auth: timeout: %w", context.DeadlineExceeded)
}

// The limit of a Listener is not that of the caller of Watch.
func TestWatchOfASilentListener(t *testing.T) {
	p := NewPushing(&Store{}, silent{})
	c := driver.Claim{Key: "key", ID: "id"}
	_, err := p.Watch(t.Context(), c, func(driver.Grant) {})
	if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Watch returned %v, which has to match os.ErrDeadlineExceeded alone", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Watch(ended, c, func(driver.Grant) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v, and its context has ended", err)
	}
}

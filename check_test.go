package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// A checked store is a memlock whose engine has warnings, hangs, or is not
// prepared, as the host of its URL says.
type checked struct {
	*memlock.Store
	host string
}

var _ driver.Checker = checked{}

func (c checked) Check(ctx context.Context) ([]string, error) {
	switch c.host {
	case "hung":
		<-ctx.Done()
		return nil, ctx.Err()
	case "bare":
		return nil, fmt.Errorf("%w: there is no table", driver.ErrInvalid)
	}
	return []string{"it evicts", "it forgets"}, errors.New("that was not all")
}

func init() {
	driver.Register("checked", func(_ context.Context, u *url.URL) (driver.Store, error) {
		return checked{memlock.New(), u.Host}, nil
	})
}

func TestOpenWarns(t *testing.T) {
	got := logOfOpen(t, "checked://me:secret@host/?token=secret", slog.LevelDebug)
	for _, want := range []string{
		"level=WARN msg=\"a setting of the store weakens its promises\" store=checked://me:xxxxx@host/ warning=\"it evicts\"\n",
		"warning=\"it forgets\"\n",
		"level=DEBUG msg=\"cannot check the settings of the store\" store=checked://me:xxxxx@host/ error=\"that was not all\"\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log is\n%swithout\n%s", got, want)
		}
	}
	if n := strings.Count(got, "\n"); n != 3 || strings.Contains(got, "secret") {
		t.Errorf("the log has %d lines, want 3 and no secret:\n%s", n, got)
	}
	if got := logOfOpen(t, "mem://", slog.LevelDebug); got != "" {
		t.Errorf("Open of a store that cannot tell logs %s", got)
	}
}

// A store that cannot keep any lock is not opened, whether or not anybody reads
// the log.
func TestOpenFailsOnWhatIsNotPrepared(t *testing.T) {
	lk, err := Open(t.Context(), "checked://me:secret@bare", nil)
	if lk != nil || !errors.Is(err, driver.ErrInvalid) {
		t.Fatalf("Open returned %v and %v, want an error that matches ErrInvalid", lk, err)
	}
	if got := err.Error(); !strings.Contains(got, "open checked://me:xxxxx@bare: ") || !strings.Contains(got, "there is no table") {
		t.Errorf("the error is %q", got)
	}
}

// An engine that does not answer costs what Open says, and fails nothing.
func TestOpenDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if got := logOfOpen(t, "checked://hung", slog.LevelDebug); !strings.Contains(got, context.DeadlineExceeded.Error()) || strings.Contains(got, "WARN") {
			t.Errorf("the log of a check without an answer is %q", got)
		}
		if took := time.Since(start); took != checkLimit {
			t.Errorf("Open took %v, want %v", took, checkLimit)
		}
	})
}

// logOfOpen returns what Open logs on a store that then works.
func logOfOpen(t *testing.T, url string, level slog.Level) string {
	t.Helper()
	var log strings.Builder
	opts := &Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))}
	lk, err := Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := lk.Do(t.Context(), "key", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := lk.Close(); err != nil {
		t.Error(err)
	}
	return log.String()
}

package holdfast

import (
	"log"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// Without a Logger, what users must know is on the default one.
func TestNilLoggerWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := defaultLog(t)
		lk, err := Open(t.Context(), "checked://host", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		expired, err := lk.Lock(t.Context(), "expired", NoRenew())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lk.Lock(t.Context(), "dropped"); err != nil {
			t.Fatal(err)
		}
		<-expired.Done()
		runtime.GC()
		time.Sleep(15 * time.Second) // the next renewal of the other finds that it was dropped
		got := text()
		for _, want := range []string{
			`level=WARN msg="a setting of the store weakens its promises" store=checked://host warning="it evicts"`,
			`level=WARN msg="lock is lost" key=expired`,
			`level=ERROR msg="lock was dropped without Unlock and is no longer renewed" key=dropped`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the default log is\n%swithout\n%s", got, want)
			}
		}
		if strings.Contains(got, "DEBUG") {
			t.Errorf("the default log has details:\n%s", got)
		}
	})
}

func TestDiscardHandlerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := defaultLog(t)
		lk := must.Get(New(memlock.New(), &Options{Logger: slog.New(slog.DiscardHandler)}))
		defer lk.Close()
		l, err := lk.Lock(t.Context(), "k", NoRenew())
		if err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		if got := text(); got != "" {
			t.Errorf("logged %s", got)
		}
	})
}

// defaultLog returns what the default logger receives during the test.
func defaultLog(t *testing.T) (text func() string) {
	before, w, flags := slog.Default(), log.Writer(), log.Flags()
	var got strings.Builder
	slog.SetDefault(slog.New(slog.NewTextHandler(&got, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(w) // which slog has set
		log.SetFlags(flags)
	})
	return func() string {
		synctest.Wait()
		return got.String()
	}
}

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A deaf Bell is that of a process that cannot hold a bell.
type deaf struct{}

func (deaf) To() string           { return "" }
func (deaf) Hang(context.Context) {}
func (deaf) Ring()                {}
func (deaf) Close() error         { return nil }
func (deaf) Wait(context.Context, string, string, int64) (Heard, error) {
	return NoBell, errors.New("no bell")
}

// TestLooksLeaveAConnection: waiters that look at their rows leave a connection to renewals,
// though the server does not answer.
func TestLooksLeaveAConnection(t *testing.T) {
	onSlow(t, func(s *scene) {
		s.db.SetMaxOpenConns(3)
		r := NewRinging(s.Store, deaf{})
		for i := range 10 {
			c := driver.Claim{Key: fmt.Sprint("key ", i), ID: fmt.Sprint("id ", i), TTL: time.Minute}
			stop, err := r.Watch(s.Context(), c, func(driver.Grant) {})
			if err != nil {
				s.Fatal(err)
			}
			defer stop()
		}
		time.Sleep(notifyLimit / 2)
		synctest.Wait()
		s.counts(2, 2)
		begin := time.Now()
		other := driver.Claim{Key: "other", ID: "other", TTL: time.Minute}
		if errs := r.Renew(s.Context(), []driver.Renewal{{Claim: other}}); time.Since(begin) > 0 {
			s.Errorf("a renewal returned %v after %v", errs, time.Since(begin))
		}
		r.end()
		r.looking.Wait()
	})
}

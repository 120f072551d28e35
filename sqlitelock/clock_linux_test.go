package sqlitelock

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// The store's clock goes by what the first process has noted for this run of the
// machine, whatever the wall clock has done since. After a restart of the
// machine it begins anew at the wall clock, but not before the last grant.
func TestClock(t *testing.T) {
	for name, test := range map[string]struct {
		change string // of the row of this run of the machine
		ahead  time.Duration
	}{
		"the wall clock was set back":           {`UPDATE holdfast SET since = since + 3600000000 WHERE name LIKE '\boot %'`, time.Hour},
		"the wall clock was set forward":        {`UPDATE holdfast SET since = since - 3600000000 WHERE name LIKE '\boot %'`, -time.Hour},
		"a restart":                             {`UPDATE holdfast SET name = '\boot other' WHERE name LIKE '\boot %'`, 0},
		"a restart with a clock that is behind": {`UPDATE holdfast SET name = '\boot other', since = 0 WHERE name LIKE '\boot %'; UPDATE holdfast SET since = since + 7200000000 WHERE name = 'key'`, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "locks.db")
			first := opened(t, "sqlite://"+path)
			granted(t, first, exclusive("before"))
			db, err := openDB(path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(test.change); err != nil {
				t.Fatal(err)
			}
			s := opened(t, "sqlite://"+path)
			after := exclusive("after")
			after.Key = "other"
			fence := granted(t, s, after).Fence
			if off := time.UnixMicro(int64(fence)).Sub(time.Now().Add(test.ahead)); off.Abs() > time.Minute {
				t.Errorf("the clock is %v off", off)
			}
			if errs := first.Renew(t.Context(), []driver.Renewal{{Claim: exclusive("before").Claim}}); test.ahead == 0 && len(errs) > 0 && errs[0] != nil {
				t.Errorf("the lease from before is %v", errs)
			}
		})
	}
}

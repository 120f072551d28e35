package servers

import (
	"strconv"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]func(TB) func() int64{
		"redis": func(tb TB) func() int64 {
			r := StartRedis(tb)
			return func() int64 { return seconds(t, r.Must("TIME").([]any)[0].(string)) }
		},
		"postgres": func(tb TB) func() int64 {
			p := StartPostgres(tb, "fsync = off")
			return func() int64 { return seconds(t, p.Must("SELECT extract(epoch from clock_timestamp())::bigint")) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := StartClock(t)
			read := now(c)
			for _, by := range []time.Duration{0, time.Hour, -time.Hour} {
				c.Step(by)
				if off := time.Duration(read()-time.Now().Unix())*time.Second - by; off.Abs() > time.Minute {
					t.Errorf("set by %v, the clock is off by %v more", by, off)
				}
			}
		})
	}
}

func seconds(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

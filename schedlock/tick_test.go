package schedlock

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

var (
	_ Schedule = cron.Schedule(nil)
	_ Schedule = Every(time.Second)
)

func parse(t *testing.T, spec string) Schedule {
	t.Helper()
	s, err := cron.ParseStandard(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(timestamp, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestDue(t *testing.T) {
	weekly, daily := parse(t, "CRON_TZ=Europe/Berlin 30 3 * * MON"), parse(t, "@daily")
	leap := parse(t, "0 0 29 2 *")
	for _, test := range []struct {
		name      string
		schedule  Schedule
		now, want string
	}{
		{"on it", Every(time.Minute), "2026-11-21T20:05:00Z", "2026-11-21T20:05:00Z"},
		{"long after", Every(time.Minute), "2026-11-21T20:05:58.9Z", "2026-11-21T20:05:00Z"},
		{"a timer is early", Every(time.Minute), "2026-11-21T20:05:59.1Z", "2026-11-21T20:06:00Z"},
		{"a short interval", Every(200 * time.Millisecond), "2026-11-21T20:05:00.379Z", "2026-11-21T20:05:00.2Z"},
		{"a short interval, early", Every(200 * time.Millisecond), "2026-11-21T20:05:00.381Z", "2026-11-21T20:05:00.4Z"},
		{"another zone", Every(time.Hour), "2026-11-21T20:05:00+01:00", "2026-11-21T19:00:00Z"},
		{"each day", daily, "2026-11-21T20:05:00Z", "2026-11-21T00:00:00Z"},
		{"a week ago", weekly, "2026-11-23T02:29:58Z", "2026-11-16T02:30:00Z"},
		{"this week", weekly, "2026-11-23T02:30:00Z", "2026-11-23T02:30:00Z"},
		{"in summer", weekly, "2026-06-29T01:30:00Z", "2026-06-29T01:30:00Z"},
		{"a second a minute", parse(t, "@every 1s"), "2026-11-21T20:05:00.5Z", "2026-11-21T20:05:00Z"},
		{"years ago", leap, "2027-11-21T20:05:00Z", "2024-02-29T00:00:00Z"},
	} {
		got, err := due(test.schedule, at(t, test.now), time.Minute)
		if err != nil || !got.at.Equal(at(t, test.want)) {
			t.Errorf("%s: at %s the tick %v is due, %v; want %s", test.name, test.now, got.at, err, test.want)
		}
	}
}

// A schedule that replicas cannot agree about is refused.
func TestDueRefuses(t *testing.T) {
	for want, s := range map[string]Schedule{
		"use Every":    parse(t, "@every 5m"),
		"has no tick":  parse(t, "0 0 30 2 *"),
		"no tick afte": Every(0),
		"no tick befo": newYear{},
	} {
		if got, err := due(s, at(t, "2026-11-21T20:05:07.3Z"), time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want an error with %q", got, err, want)
		}
	}
}

// newYear has ticks in days to come only.
type newYear struct{}

func (newYear) Next(t time.Time) time.Time {
	first := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	if t.Before(first) {
		return first
	}
	return t.Truncate(time.Hour).Add(time.Hour)
}

// changes are nights in which clocks are set by half an hour, an hour or two hours, at
// all sorts of offsets.
var changes = map[string][]string{
	"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"},
	"Pacific/Chatham":     {"2026-04-04T14:00:00Z", "2026-09-26T14:00:00Z"},
	"Antarctica/Troll":    {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
	"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
}

// nights are schedules with ticks, or without them, around such changes.
var nights = []string{
	"0 0 * * *", "15 1 * * *", "45 1 * * *", "0 2 * * *", "30 2 * * *", "0 3 * * *", "*/10 2 * * *",
	"0 */2 * * *", "30 */3 * * *", "17 * * * *", "0 2 * * SUN", "30 1 25 * *",
}

// eachNight calls test with every such schedule and change, or in the short form with
// every fifth: those have all of the changes, and all of the schedules.
func eachNight(t *testing.T, test func(t *testing.T, s Schedule, change time.Time)) {
	n := 0
	for _, zone := range slices.Sorted(maps.Keys(changes)) {
		for _, spec := range nights {
			for _, change := range changes[zone] {
				if n++; testing.Short() && n%5 > 0 {
					continue
				}
				t.Run(zone+" "+spec+" "+change[:7], func(t *testing.T) {
					test(t, parse(t, "CRON_TZ="+zone+" "+spec), at(t, change))
				})
			}
		}
	}
}

// The due ticks depend on the ticks alone, and every tick is due at its time: when cron,
// asked right before, says so.
func TestDueWhenClocksAreChanged(t *testing.T) {
	eachNight(t, func(t *testing.T, s Schedule, change time.Time) {
		begin, end := change.Add(-6*time.Hour), change.Add(26*time.Hour)
		var want time.Time
		for now := begin.Add(-36 * time.Hour); now.Before(end); now = now.Add(time.Minute) {
			if s.Next(now.Add(-time.Second)).Equal(now) {
				want = now
			}
			if now.Before(begin) || want.IsZero() || !want.Equal(now) && now.Minute() != 30 {
				continue
			}
			for _, seconds := range []time.Duration{0, 59} {
				got, err := due(s, now.Add(seconds*time.Second), time.Millisecond)
				if err != nil || !got.at.Equal(want) {
					t.Fatalf("at %v the tick %v is due, %v; want %v", now.Add(seconds*time.Second), got.at, err, want)
				}
			}
		}
	})
}

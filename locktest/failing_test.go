package locktest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locktest"
)

// showFailures lets the tests run that fail, as they should.
const showFailures = "LOCKTEST_SHOW_FAILURES"

// fails says that a test fails as it should: TestFailures runs it and reads what it says.
func fails(t *testing.T) {
	t.Helper()
	if os.Getenv(showFailures) == "" {
		t.Skip("fails, as it should: TestFailures runs it")
	}
}

// TestFailures runs all tests that fail, as go test would, and reads their output.
func TestFailures(t *testing.T) {
	if os.Getenv(showFailures) != "" {
		t.Skip("it would run itself")
	}
	want := map[string][]string{ // by test, expressions
		"TestCareless": lostUpdate("TestCareless"),
		"TestHasty":    lostUpdate("TestHasty"),
		"TestFailsWithALeak": {
			`locktest: the lock on "app/report" was never unlocked: app locked it at world_test.go:\d+ \(called at failing_test.go:\d+\)`,
			`(?m)^ +0\.000s  app +locks "app/report" after 0s, token \d+$`,
		},
		"TestFailsWithALeakThatIsLost":    {`the lock on "brief" was never unlocked: app locked it at world_test.go:\d+`},
		"TestFailsWithALockThatIsDropped": {`the lock on "forgotten" was never unlocked: app locked it at world_test.go:\d+`, `app +has lost "forgotten", token \d+: dropped`},
		"TestFailsToLoseWhatNobodyHolds":  {`failing_test.go:\d+: locktest: lose "raport": nobody holds it; held are "report" by app at world_test.go:\d+`},
		"TestFailsToHoldWhatIsHeld":       {`failing_test.go:\d+: locktest: hold "report" elsewhere: holdfast: trylock "report": held by "app" since `},
		"TestFailsWhenItWaitsForItself":   {`locktest: the test goes on after 1h0m0s of virtual time; held are "report" by app at world_test.go:\d+`, `failing_test.go:\d+: the second lock: .*locker is closed`},
		"TestFailsWhenNobodyUnlocks":      {`locktest: the test goes on after 24h0m0s of virtual time; held are "report" by a at world_test.go:\d+`},
		"TestFailsInABubbleOfItsOwn":      {`failing_test.go:\d+: locktest.Run makes a bubble of its own: call it outside of synctest.Test, Run and Explore`},
		"TestFailsToExploreInAWorld":      {`failing_test.go:\d+: locktest.Explore makes a bubble of its own`},
		"TestFailsWithoutSeeds":           {`failing_test.go:\d+: locktest.Explore: 0 seeds: it must be 1 at least`},
		"TestFailsIfNoLockIsTaken":        {`failing_test.go:\d+: nothing is proved: no lock was taken in 3 seeds`},
		"TestFailsWithALog":               {`(?m)^ +90\.000s  app +logs level=WARN msg=hurry at=work time=7$`},
		"TestFailsWithoutAResume":         {`the test goes on after 24h0m0s of virtual time; held are no locks; app is paused`, `(?m)^ +0\.000s  app +is paused$`},
		"TestFailsAndNothingHasHappened":  {`(?m)what has happened.*\n +0\.000s  the test +has returned$`},
		"TestFailsWithALongJournal":       {`without the first \d00 lines`, `reads 299 from n\n`},
	}
	skip := ""
	if testing.Short() { // takes 10 s
		skip = "TestFailsWhenNobodyUnlocks"
		delete(want, skip)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^Test(Careless|Hasty|Fails.+)$", "-test.skip="+skip, "-test.v")
	cmd.Env = append(os.Environ(), showFailures+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the tests pass")
	}
	said := byTest(string(out))
	for test, expressions := range want {
		for _, e := range append(expressions, `(?m)^--- FAIL: `+test) {
			if !regexp.MustCompile(e).MatchString(said[test]) {
				t.Errorf("%s does not say %s, but:\n%s", test, e, said[test])
			}
		}
		delete(said, test)
	}
	for test, text := range said {
		t.Errorf("%s has failed, and no failure was expected:\n%s", test, text)
	}
}

// lostUpdate is what Explore says of a test with a deposit that loses an update.
func lostUpdate(test string) []string {
	return []string{
		`deposit_test.go:\d+: the balance is \d+ after \d+ confirmed deposits of 1`,
		`(?m)^ +\d+\.\d{3}s  [abc] +writes \d+ to balance$`,
		`(?m)^ +\d+\.\d{3}s  [abc] +(is paused|is cut off from the store|is to lose "account/42", token \d+)$`,
		`deposit_test.go:\d+: seed (\d+) has failed, after \d+ that passed. Run it alone, many times:\n` +
			`\s+go test -run '\^` + test + `\$/\^seed=\d+\$' -count=100 -failfast`,
		`(?m)^    --- FAIL: ` + test + `/seed=\d+`,
	}
}

// byTest splits the output of go test -v.
func byTest(out string) map[string]string {
	said := make(map[string]string)
	for _, part := range strings.Split("\n"+out, "\n=== RUN   ")[1:] {
		name, _, _ := strings.Cut(part, "\n")
		name, _, _ = strings.Cut(name, "/")
		said[name] += part + "\n"
	}
	return said
}

func TestFailsWithALeak(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		locks := w.Process("app").Open(&holdfast.Options{Prefix: "app/"})
		lock(t, locks, "report")
	})
}

func TestFailsWithALeakThatIsLost(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		lock(t, w.Locker(), "brief", holdfast.NoRenew())
	})
}

func TestFailsWithALockThatIsDropped(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		lock(t, w.Locker(), "forgotten")
		for { // until the garbage collector has found it
			time.Sleep(10 * time.Second)
			runtime.GC()
			if l, err := w.Process("b").Locker().TryLock(t.Context(), "forgotten"); err == nil {
				unlock(t, l)
				return
			}
		}
	})
}

func TestFailsToLoseWhatNobodyHolds(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		defer lock(t, w.Locker(), "report").Unlock()
		w.Lose("raport")
	})
}

func TestFailsToHoldWhatIsHeld(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		defer lock(t, w.Locker(), "report").Unlock()
		w.HoldElsewhere("report")
		t.Error("goes on")
	})
}

func TestFailsWhenItWaitsForItself(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		w.Limit(time.Hour)
		defer lock(t, w.Locker(), "report").Unlock()
		_, err := w.Locker().Lock(context.Background(), "report")
		t.Errorf("the second lock: %v", err)
	})
}

// A waiter asks about once a second: in a virtual day a hundred thousand times.
func TestFailsWhenNobodyUnlocks(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		defer lock(t, w.Process("a").Locker(), "report").Unlock()
		if l, err := w.Process("b").Locker().Lock(t.Context(), "report"); err == nil { // as the world closes a
			_ = l.Unlock()
		}
	})
}

func TestFailsInABubbleOfItsOwn(t *testing.T) {
	fails(t)
	synctest.Test(t, func(t *testing.T) {
		locktest.Run(t, func(*testing.T, *locktest.World) {})
	})
}

func TestFailsToExploreInAWorld(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, _ *locktest.World) {
		locktest.Explore(t, 1, func(*testing.T, *locktest.World) {})
	})
}

func TestFailsWithoutSeeds(t *testing.T) {
	fails(t)
	locktest.Explore(t, 0, func(*testing.T, *locktest.World) {})
}

func TestFailsIfNoLockIsTaken(t *testing.T) {
	fails(t)
	locktest.Explore(t, 3, func(*testing.T, *locktest.World) { time.Sleep(time.Hour) })
}

func TestFailsWithALog(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		time.Sleep(90 * time.Second)
		w.Process("app").Logger().With("at", "work").Warn("hurry", "time", 7)
		t.Fail()
	})
}

func TestFailsWithoutAResume(t *testing.T) {
	fails(t)
	locktest.Run(t, func(_ *testing.T, w *locktest.World) {
		w.Process("app").Pause()
		w.Process("app").Step()
	})
}

func TestFailsAndNothingHasHappened(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, _ *locktest.World) { t.Fail() })
}

func TestFailsWithALongJournal(t *testing.T) {
	fails(t)
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		n := locktest.NewRegister("n", 0)
		for i := range 300 {
			n.Write(w.Process("app"), i)
			n.Read(w.Process("app"))
		}
		t.Fail()
	})
}

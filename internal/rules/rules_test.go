package rules_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/rules"
)

var errNoise = errors.New("it makes noise")

// quiet is rules, of which the second is broken.
func quiet() (s rules.Suite, ran *[]string) {
	ran = new([]string)
	rule := func(name string, seen error) rules.Rule {
		return rules.Rule{Name: name, Words: "It is " + name + ".", Check: func(*testing.T) error {
			*ran = append(*ran, name)
			return rules.Caught(func() {
				if seen != nil {
					rules.Fail(seen)
				}
			})
		}}
	}
	return rules.Suite{Rules: []rules.Rule{rule("small", nil), rule("quiet", errNoise), rule("cheap", nil)}}, ran
}

func TestCheck(t *testing.T) {
	s, ran := quiet()
	failures := s.Check(t)
	if len(failures) != 1 || failures[0].Rule != "quiet" || failures[0].Seen != errNoise {
		t.Errorf("failures %v, want that of quiet", failures)
	}
	if text := failures[0].String(); !strings.Contains(text, "It is quiet.") || !strings.Contains(text, errNoise.Error()) {
		t.Errorf("a failure prints %q, want the sentence and what was seen", text)
	}
	if failures := s.Check(t, "small", "cheap"); failures != nil {
		t.Errorf("failures %v of rules that are kept", failures)
	}
	if want := []string{"small", "quiet", "cheap", "small", "cheap"}; !slices.Equal(*ran, want) {
		t.Errorf("ran %q, want %q", *ran, want)
	}
}

func TestBubble(t *testing.T) {
	began := time.Now()
	s := rules.Suite{Bubble: true, Rules: []rules.Rule{{Name: "slow", Check: func(*testing.T) error {
		time.Sleep(24 * time.Hour)
		return nil
	}}}}
	s.Run(t)
	if took := time.Since(began); took > time.Hour {
		t.Errorf("a day in a bubble took %v", took)
	}
}

func TestOtherPanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "a mistake" {
			t.Errorf("recovered %v, want the panic of the check", p)
		}
	}()
	_ = rules.Caught(func() { panic("a mistake") })
	t.Error("the panic was caught")
}

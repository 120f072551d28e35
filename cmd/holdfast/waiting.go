package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// How often a waiting run prints the lock's state: on a terminal, where each line replaces
// the previous line, and elsewhere.
const seldom = 2 * time.Second

var rarely = time.Minute

// watch prints the state of the queue until stop is called.
func (j *job) watch(ctx context.Context, locks *holdfast.Locker) (stop func()) {
	if j.quiet || j.try {
		return func() {}
	}
	pause, show := rarely, func(line string) { cli.Say(j.stderr, "%s", line) }
	if cli.Terminal(j.stderr) {
		line := cli.Progress(j.stderr)
		pause, show = seldom, func(text string) { line("holdfast: " + text) }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		shown := false
		for begin := time.Now(); ; {
			select {
			case <-ctx.Done():
				if shown {
					cli.Progress(j.stderr)("")
				}
				return
			case <-time.After(pause):
			}
			if line := j.standing(ctx, locks); line != "" && ctx.Err() == nil {
				show(fmt.Sprintf("waiting for %q for %s: %s", j.key, cli.Short(time.Since(begin).Round(time.Second)), line))
				shown = true
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// standing describes the place of this run in the queue, and the claims before it. standing
// returns "" before the first request for the lock.
func (j *job) standing(ctx context.Context, locks *holdfast.Locker) string {
	tried := j.events.tried.Load()
	if tried == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := state(ctx, locks, j.key)
	if held := (*holdfast.HeldError)(nil); err != nil || len(s.Holders)+len(s.Waiters) == 0 && errors.As(tried.Err, &held) {
		return cli.Clean(cli.Bare(tried.Err).Error()) // this store reports no more
	}
	place := slices.IndexFunc(s.Waiters, func(c claim) bool { return c.Owner == tried.Owner })
	var parts []string
	switch {
	case place == 0:
		parts = append(parts, "next in the queue")
	case place > 0:
		parts = append(parts, fmt.Sprintf("number %d in the queue, after %s", place+1, s.Waiters[place-1].who()))
	}
	if n := len(s.Holders); n > 0 {
		text := "held by " + s.Holders[0].who()
		if n > 1 {
			text += fmt.Sprintf(" and %d more", n-1)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// who names the owner of a claim with the note.
func (c claim) who() string {
	if c.Note == "" {
		return cli.Clean(c.Owner)
	}
	return fmt.Sprintf("%s (%s)", cli.Clean(c.Owner), cli.Clean(c.Note))
}

// longestLine is how many letters of a command line a note has at most.
const longestLine = 80

// commandLine is the default note of a run.
func (j *job) commandLine() string {
	text := strings.ToValidUTF8(strings.Join(j.argv, " "), "?")
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > longestLine {
		text = string(letters[:longestLine-3]) + "..."
	}
	return text
}

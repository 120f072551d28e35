package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/driver"
)

// Init says when the store was prepared only if init knows.
func TestInitSaysWhatItKnows(t *testing.T) {
	for want, missing := range map[string]error{
		"holdfast: db is prepared now\n":     driver.ErrInvalid,
		"holdfast: db was prepared before\n": nil,
		"holdfast: db is prepared\n":         errors.New("no answer"),
	} {
		var said bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetErr(&said)
		i := initing{store: &site{root: cmd}, cmd: cmd}
		if err := i.create(t.Context(), &creator{missing}, "db"); said.String() != want || err != nil {
			t.Errorf("after a check with the error %v: %q, %v; want %q", missing, said.String(), err, want)
		}
	}
}

// A creator returns an error of Check until Create is called.
type creator struct{ missing error }

func (c *creator) Check(context.Context) ([]string, error) { return nil, c.missing }
func (c *creator) Create(context.Context) error            { c.missing = nil; return nil }
func (c *creator) Schema() []string                        { return nil }

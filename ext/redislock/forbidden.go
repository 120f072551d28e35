package redislock

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	lineOfScript  = regexp.MustCompile(`user_script: ?(\d+)`)
	commandOfLine = regexp.MustCompile(`call\('([A-Z]+)'`)
)

// explain adds to the error of a call what Redis leaves out when it denies
// something to a user: of commands that a script runs it tells only the line,
// of keys nothing. Who may not ask for a Cluster's slots takes it for a single
// server.
func (s script) explain(err error, call Command) error {
	said := err.Error()
	switch {
	case strings.HasPrefix(said, "NOPERM") && strings.Contains(said, " key"):
		return fmt.Errorf("%w: %q", err, call.Keys)
	case strings.HasPrefix(said, "MOVED"):
		return fmt.Errorf("%w (the server is part of a Cluster, which the client has not noticed: may the user run CLUSTER SLOTS?)", err)
	case !strings.Contains(said, "can't run this command"):
		return err
	}
	var names []string
	for _, match := range commandOfLine.FindAllStringSubmatch(s.line(said), -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	if names == nil {
		return err
	}
	return fmt.Errorf("%w (the user may not run %s)", err, strings.Join(names, " or "))
}

// line returns the line of the script of which an error tells, "" if it tells
// of none.
func (s script) line(said string) string {
	match := lineOfScript.FindStringSubmatch(said)
	if match == nil {
		return ""
	}
	lines := strings.Split(s.text, "\n")
	if n, err := strconv.Atoi(match[1]); err == nil && n >= 1 && n <= len(lines) {
		return lines[n-1]
	}
	return ""
}

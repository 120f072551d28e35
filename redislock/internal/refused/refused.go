// Package refused explains errors of Redis and tells callers what to do.
package refused

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrOOM says that Redis has used up its maxmemory.
var ErrOOM = errors.New("out of memory in Redis")

// remedies say what to do about an error, by error code.
var remedies = map[string]string{
	"OOM":         "Redis has used up its memory: raise maxmemory, or delete data",
	"READONLY":    "the server is a replica: connect to its primary, or through Sentinels with ?master=",
	"MASTERDOWN":  "the server is a replica without its primary: connect to the primary, or through Sentinels with ?master=",
	"NOREPLICAS":  "too few replicas follow the server: start them, or lower min-replicas-to-write",
	"MISCONF":     "Redis cannot save to its disk: read its log, make room, or set stop-writes-on-bgsave-error no",
	"LOADING":     "Redis has just started: wait until it has read its data",
	"CLUSTERDOWN": "slots of the Cluster have no primary: look at CLUSTER INFO",
	"BUSY":        "a script on the server does not end: look at SLOWLOG, or use SCRIPT KILL",
	"NOAUTH":      "the server wants a password: redis://user:password@host",
}

var (
	lineOfScript  = regexp.MustCompile(`user_script: ?(\d+)`)
	commandOfLine = regexp.MustCompile(`call\('([A-Z]+)'`)

	// aboutScript is the text about the script that Redis 7 and Redis 6 add to an error.
	aboutScript = regexp.MustCompile(`^(?:ERR )?Error running script \(call to f_[0-9a-f]{40}\): |@?user_script: ?\d+: -?| script: [0-9a-f]{40}, on @user_script:\d+\.?`)
	codeOfError = regexp.MustCompile(`^[A-Z]+ `)
)

// A refusal is an error of the server, reworded: without the names of scripts, which mean
// nothing to callers, and with what to do.
type refusal struct {
	text string
	oom  bool
	raw  error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.raw }

func (r *refusal) Is(target error) bool { return r.oom && target == ErrOOM }

// Explain adds to the error of a script what to do, as far as known. keys are the keys of
// the call.
func Explain(err error, script string, keys []string) error {
	err = WithoutArgs(err)
	said := aboutScript.ReplaceAllString(err.Error(), "")
	code := strings.TrimSpace(codeOfError.FindString(said))
	remedy := remedies[code]
	switch {
	case code == "WRONGTYPE":
		remedy = fmt.Sprintf("one of the keys %q is not as Holdfast writes it: delete that key if nobody uses it, or use another prefix", keys)
	case code == "NOPERM" || strings.Contains(said, "can't run this command"):
		remedy = missing(err.Error(), script, keys)
	case code == "MOVED" || code == "CROSSSLOT":
		remedy = "the server is part of a Cluster: use a client for Clusters; for a URL, let the user run CLUSTER SLOTS"
	}
	if remedy != "" {
		said += " (" + remedy + ")"
	} else if said == err.Error() {
		return err
	}
	return &refusal{said, code == "OOM", err}
}

// missing names the denied command or keys. Redis reports only the line of the script for
// a denied command, and nothing for a denied key.
func missing(said, script string, keys []string) string {
	if strings.Contains(said, " key") {
		return fmt.Sprintf("the user may not use one of the keys %q", keys)
	}
	var names []string
	for _, match := range commandOfLine.FindAllStringSubmatch(line(said, script), -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("the user may not run %s", strings.Join(names, " or "))
}

// WithoutArgs returns an error without the arguments that Redis repeats for an unknown
// command. If AUTH was renamed on the server, the arguments include the password.
func WithoutArgs(err error) error {
	if err == nil {
		return nil
	}
	if said, _, repeats := strings.Cut(err.Error(), ", with args beginning with"); repeats {
		return errors.New(said)
	}
	return err
}

// line returns the line of the script that an error names, "" if the error names no line.
func line(said, script string) string {
	match := lineOfScript.FindStringSubmatch(said)
	if match == nil {
		return ""
	}
	lines := strings.Split(script, "\n")
	if n, err := strconv.Atoi(match[1]); err == nil && n >= 1 && n <= len(lines) {
		return lines[n-1]
	}
	return ""
}

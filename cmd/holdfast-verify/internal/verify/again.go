package verify

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// again returns the command that repeats the operations and faults, without passwords.
func (s *scene) again() string {
	words := []string{"holdfast", "verify"}
	add := func(flag, value, usual string) {
		if value != usual {
			words = append(words, "--"+flag, quoted(value))
		}
	}
	if s.Store != "" {
		add("store", s.target.name, "")
	}
	add("start", s.Start, "")
	add("kind", plan.List(s.Kinds), "")
	if s.named && len(s.Nemeses) == 0 {
		add("nemesis", plan.None, "")
	} else if s.named {
		add("nemesis", plan.List(s.Nemeses), "")
	}
	usual := Default()
	add("for", s.Length.String(), "")
	add("ttl", s.TTL.String(), usual.TTL.String())
	add("workers", strconv.Itoa(s.Workers), strconv.Itoa(usual.Workers))
	add("clients", strconv.Itoa(s.Clients), strconv.Itoa(usual.Clients))
	add("keys", strconv.Itoa(s.Keys), strconv.Itoa(usual.Keys))
	add("beside", s.Beside, "")
	add("seed", strconv.FormatUint(s.Seed, 10), "")
	return strings.Join(words, " ")
}

// plain matches words that no shell interprets.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted quotes a word for a shell.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

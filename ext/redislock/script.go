package redislock

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script
	"embed"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

//go:embed lua/*.lua
var lua embed.FS

// A script is the Lua text of one verb.
type script struct {
	text, sha string
	usual     []string // the words of a call with five keys
}

var (
	acquireScript     = load("acquire")
	acquireManyScript = load("acquire_many")
	releaseScript     = load("release")
	releaseManyScript = load("release_many")
	breakScript       = load("break")
	renewScript       = load("renew")
	raiseScript       = load("raise")
	holdersScript     = load("holders")
)

// include stands where the text of another file belongs. What few calls need
// comes late in a script, so that the others do not even define it.
var include = regexp.MustCompile(`(?m)^-- include (\w+)$`)

func load(name string) script {
	text := read(name)
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	return script{text, sha, []string{"EVALSHA", sha, "5"}}
}

func read(name string) string {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // It was there when this was compiled.
	}
	return include.ReplaceAllStringFunc(string(text), func(line string) string {
		return read(strings.TrimPrefix(line, "-- include "))
	})
}

// call is the command that runs the script, by its name.
func (s script) call(keys []string, args ...string) Command {
	words := s.usual
	if len(keys) != 5 {
		words = []string{"EVALSHA", s.sha, strconv.Itoa(len(keys))}
	}
	return Command{Words: words, Keys: keys, Args: args}
}

// eval sends calls of a script. A server that does not know it, because it is
// new, has restarted or was told to forget, gets its text.
func eval(ctx context.Context, conn Conn, s script, calls ...Command) []Reply {
	replies := conn.Do(ctx, calls...)
	var unknown []int
	for i := range replies {
		if isUnknownScript(replies[i].Err) {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		again := make([]Command, len(unknown))
		for n, i := range unknown {
			again[n] = s.whole(calls[i])
		}
		for n, r := range conn.Do(ctx, again...) {
			replies[unknown[n]] = r
		}
	}
	for i := range replies {
		if replies[i].Err != nil {
			replies[i].Err = s.explain(replies[i].Err, calls[i])
		}
	}
	return replies
}

// whole is a call with the script's text in place of its name.
func (s script) whole(call Command) Command {
	call.Words = []string{"EVAL", s.text, call.Words[2]}
	return call
}

func isUnknownScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
}

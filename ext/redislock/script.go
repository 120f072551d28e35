package redislock

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script
	"embed"
	"encoding/hex"
	"strconv"
	"strings"
)

//go:embed lua/*.lua
var lua embed.FS

// A script is the Lua text of one verb.
type script struct{ text, sha string }

var (
	acquireScript = load("claim", "book", "acquire")
	releaseScript = load("claim", "book", "release")
	breakScript   = load("claim", "book", "break")
	renewScript   = load("claim", "renew")
	raiseScript   = load("claim", "raise")
	holdersScript = load("claim", "holders")
)

// load joins files to a script: first what the last one rests on.
func load(files ...string) script {
	var text strings.Builder
	for _, name := range files {
		part, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // It was there when this was compiled.
		}
		text.Write(part)
	}
	sum := sha1.Sum([]byte(text.String()))
	return script{text.String(), hex.EncodeToString(sum[:])}
}

// call is the command that runs the script, by its name.
func (s script) call(keys []string, args ...string) Command {
	return Command{Words: []string{"EVALSHA", s.sha, strconv.Itoa(len(keys))}, Keys: keys, Args: args}
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
	if len(unknown) == 0 {
		return replies
	}
	again := make([]Command, len(unknown))
	for n, i := range unknown {
		again[n] = s.whole(calls[i])
	}
	for n, r := range conn.Do(ctx, again...) {
		replies[unknown[n]] = r
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

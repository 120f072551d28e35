package redislock

import (
	"context"
	"embed"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/redislock/internal/luascript"
	"github.com/holdfast-go/holdfast/redislock/internal/refused"
)

//go:embed lua/*.lua
var lua embed.FS

// A script is the Lua text of one verb.
type script struct {
	text, sha string
	usual     []string // the words of a call with five keys
}

// The text of a script is put together when a call first needs it, since a program that
// imports this package may never open Redis.
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

func load(name string) func() script {
	return sync.OnceValue(func() script {
		text, sha := luascript.Load(lua, name)
		return script{text, sha, []string{"EVALSHA", sha, "5"}}
	})
}

// call returns the command that runs the script by its SHA-1.
func (s script) call(keys []string, args ...string) Command {
	words := s.usual
	if len(keys) != 5 {
		words = []string{"EVALSHA", s.sha, strconv.Itoa(len(keys))}
	}
	return Command{Words: words, Keys: keys, Args: args}
}

// A doer is a Conn or a Single.
type doer interface {
	Do(ctx context.Context, cmds ...Command) []Reply
}

// eval sends calls of a script. A server without the script gets the text: a new or restarted
// server, or a server whose scripts were flushed.
func eval(ctx context.Context, conn doer, s script, calls ...Command) []Reply {
	replies := conn.Do(ctx, calls...)
	var unknown []int
	for i := range replies {
		if luascript.IsUnknown(replies[i].Err) {
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
			replies[i].Err = refused.Explain(replies[i].Err, s.text, calls[i].Keys)
		}
	}
	return replies
}

// whole returns a call with the script's text in place of its SHA-1.
func (s script) whole(call Command) Command {
	call.Words = []string{"EVAL", s.text, call.Words[2]}
	return call
}

// ErrOOM says that Redis has used up its maxmemory and accepts no new locks. Held locks
// can still be renewed and released.
var ErrOOM = refused.ErrOOM

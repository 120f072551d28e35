package redisonce

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/newer"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/internal/luascript"
	"github.com/holdfast-go/holdfast/redislock/internal/refused"
)

// DefaultPrefix stands before all keys in Redis unless [Options] say otherwise.
const DefaultPrefix = "holdfast:once:"

// Options say how Records use Redis. nil means the defaults.
type Options struct {
	// Prefix stands before every key in Redis; "" means DefaultPrefix. Records with the
	// same prefix are the same.
	Prefix string
}

// Records are kept in Redis. Make them with [New].
type Records struct {
	conn   redislock.Conn
	prefix string
}

var _ once.Records = (*Records)(nil)

// New returns the records in a server or Cluster. New does no I/O, and never closes the
// client.
func New(client rueidis.Client, opts *Options) *Records {
	return NewConn(redislock.Rueidis(client), opts)
}

// NewConn is [New] for another client library. NewConn never closes conn.
func NewConn(conn redislock.Conn, opts *Options) *Records {
	r := &Records{conn, DefaultPrefix}
	if opts != nil && opts.Prefix != "" {
		r.prefix = opts.Prefix
	}
	return r
}

//go:embed lua/*.lua
var lua embed.FS

var (
	beginScript  = load("begin")
	finishScript = load("finish")
	forgetScript = load("forget")
)

// A script is the Lua text of one method, and the script's SHA-1.
type script struct{ text, sha string }

func load(name string) func() script {
	return sync.OnceValue(func() script {
		text, sha := luascript.Load(lua, name)
		return script{text, sha}
	})
}

// Load implements [once.Records].
func (r *Records) Load(ctx context.Context, key string) (once.Record, error) {
	return parse(r.conn.Do(ctx, redislock.Command{
		Words: []string{"HMGET"}, Keys: []string{r.prefix + key}, Args: []string{"format", "state", "token", "print", "result"}, ReadOnly: true,
	})[0], key)
}

// Begin implements [once.Records].
func (r *Records) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
	before, err := r.run(ctx, beginScript(), key, decimal(token), fingerprint, milliseconds(keep))
	if err != nil {
		return once.Record{}, err
	}
	after, _, err := before.AfterBegin(key, token, fingerprint)
	return after, err
}

// Finish implements [once.Records].
func (r *Records) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	before, err := r.run(ctx, finishScript(), key, decimal(token), string(result), milliseconds(keep))
	if err != nil {
		return err
	}
	_, _, err = before.AfterFinish(key, token, result)
	return err
}

// Forget implements [once.Records].
func (r *Records) Forget(ctx context.Context, key string, token uint64) error {
	before, err := r.run(ctx, forgetScript(), key, decimal(token))
	if err != nil {
		return err
	}
	_, _, err = before.AfterForget(key, token)
	return err
}

// run runs a script and returns the record as it was before the call.
func (r *Records) run(ctx context.Context, s script, key string, args ...string) (once.Record, error) {
	call := redislock.Command{Words: []string{"EVALSHA", s.sha, "1"}, Keys: []string{r.prefix + key}, Args: args}
	reply := r.conn.Do(ctx, call)[0]
	if luascript.IsUnknown(reply.Err) {
		call.Words = []string{"EVAL", s.text, "1"}
		reply = r.conn.Do(ctx, call)[0]
	}
	if reply.Err != nil {
		reply.Err = refused.Explain(reply.Err, s.text, call.Keys)
	}
	return parse(reply, key)
}

func decimal(token uint64) string { return strconv.FormatUint(token, 10) }

// milliseconds rounds up: the minimum in Redis is 1.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

// format is the version of a record. The scripts know the version, too.
const format = 1

// parse reads the fields format, state, token, fingerprint and result, as far as present.
func parse(reply redislock.Reply, key string) (r once.Record, err error) {
	values, _ := reply.Value.([]any)
	fields := make([]string, len(values))
	for i, value := range values {
		fields[i], _ = value.(string) // nil: the record has no such field
	}
	if reply.Err != nil || len(fields) < 3 || fields[0] == "" && fields[1] == "" {
		return r, reply.Err
	}
	if fields[0] != "" && fields[0] != strconv.Itoa(format) { // as the scripts decide
		found, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || found == format {
			return r, fmt.Errorf("%w: the record of key %q has the format %.20q, and this release knows %d", driver.ErrInvalid, key, fields[0], format)
		}
		return r, newer.Check(key, found, format, newer.Stays)
	}
	fields = fields[1:]
	state, err := strconv.ParseUint(fields[0], 10, 8)
	if err == nil {
		r.Token, err = strconv.ParseUint(fields[1], 10, 64)
	}
	if err != nil || once.State(state) > once.Done {
		return once.Record{}, fmt.Errorf("the key in Redis holds no record: state %.20q, token %.20q", fields[0], fields[1])
	}
	r.State = once.State(state)
	if len(fields) == 4 {
		r.Fingerprint, r.Result = fields[2], []byte(fields[3])
	}
	return r, nil
}

package redisonce

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/once"
)

// DefaultPrefix stands before all keys in Redis unless Options say otherwise.
const DefaultPrefix = "holdfast:once:"

// Options say how Records use Redis. nil means the defaults.
type Options struct {
	// Prefix stands before every key in Redis; "" means DefaultPrefix. Records
	// with the same prefix are the same.
	Prefix string
}

// Records are kept in Redis. Make them with New.
type Records struct {
	client rueidis.Client
	prefix string
}

var _ once.Records = (*Records)(nil)

// New returns the records in a server or Cluster. It does no I/O, and never closes
// the client.
func New(client rueidis.Client, opts *Options) *Records {
	r := &Records{client, DefaultPrefix}
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

// include stands where the text of another file belongs.
var include = regexp.MustCompile(`(?m)^-- include (\w+)$`)

func load(name string) *rueidis.Lua { return rueidis.NewLuaScript(read(name)) }

func read(name string) string {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // It was there when this was compiled.
	}
	return include.ReplaceAllStringFunc(string(text), func(line string) string {
		return read(strings.TrimPrefix(line, "-- include "))
	})
}

// Load implements [once.Records].
func (r *Records) Load(ctx context.Context, key string) (once.Record, error) {
	return parse(r.client.Do(ctx, r.client.B().Hmget().Key(r.prefix+key).Field("state", "token", "print", "result").Build()))
}

// Begin implements [once.Records].
func (r *Records) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
	before, err := r.run(ctx, beginScript, key, decimal(token), fingerprint, milliseconds(keep))
	if err != nil {
		return once.Record{}, err
	}
	after, _, err := before.AfterBegin(key, token, fingerprint)
	return after, err
}

// Finish implements [once.Records].
func (r *Records) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	before, err := r.run(ctx, finishScript, key, decimal(token), rueidis.BinaryString(result), milliseconds(keep))
	if err != nil {
		return err
	}
	_, _, err = before.AfterFinish(key, token, result)
	return err
}

// Forget implements [once.Records].
func (r *Records) Forget(ctx context.Context, key string, token uint64) error {
	before, err := r.run(ctx, forgetScript, key, decimal(token))
	if err != nil {
		return err
	}
	_, _, err = before.AfterForget(key, token)
	return err
}

// run runs a script and returns the record as it was before.
func (r *Records) run(ctx context.Context, script *rueidis.Lua, key string, args ...string) (once.Record, error) {
	return parse(script.Exec(ctx, r.client, []string{r.prefix + key}, args))
}

func decimal(token uint64) string { return strconv.FormatUint(token, 10) }

// milliseconds rounds up: Redis takes no less than one.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

// parse reads what there is of state, token, fingerprint and result.
func parse(answer rueidis.RedisResult) (r once.Record, err error) {
	fields, err := answer.AsStrSlice()
	if err != nil || len(fields) < 2 || fields[0] == "" {
		return r, err
	}
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

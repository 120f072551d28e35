package register

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	//go:embed lua/fenced.lua
	fencedText string

	//go:embed lua/write.lua
	writeText string

	plainScript  = rueidis.NewLuaScript(writeText)
	fencedScript = rueidis.NewLuaScript(fencedText + writeText)
)

// Keys are registers in a Redis: a hash for each register, and a list of its records. For a
// fenced register, the script that writes also checks the token.
type keys struct{ client rueidis.Client }

func openKeys(at string) (*keys, error) {
	options, err := rueidis.ParseURL(at)
	if err != nil {
		return nil, err
	}
	options.DisableCache, options.ForceSingleClient = true, true
	options.PipelineMultiplex = -1       // one connection
	options.Dialer.Timeout = time.Minute // no fault harms the server, but the machine may be busy
	client, err := rueidis.NewClient(options)
	return &keys{client}, err
}

func (k *keys) Close() error {
	k.client.Close()
	return nil
}

// Create makes nothing: the first write creates the key.
func (k *keys) Create(context.Context, []Name) error { return nil }

func (k *keys) Read(ctx context.Context, name Name) (State, error) {
	value, err := k.client.Do(ctx, k.client.B().Hget().Key(name.String()).Field("value").Build()).AsUint64()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return State{Value: value}, err
}

func (k *keys) Append(ctx context.Context, name Name, r Record) (State, error) {
	script := plainScript
	if name.Fenced {
		script = fencedScript
	}
	value, err := script.Exec(ctx, k.client, []string{name.String(), records(name)}, []string{
		strconv.FormatUint(r.Token, 10), strconv.FormatUint(r.Value, 10), fmt.Sprintf("%d %d %d", r.Token, r.Value, r.Seen),
	}).AsUint64()
	if refusal, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(refusal.Error(), "OUTDATED") {
		return State{Refused: true}, nil
	}
	return State{Value: value}, err
}

func (k *keys) Records(ctx context.Context, name Name) ([]Record, error) {
	texts, err := k.client.Do(ctx, k.client.B().Lrange().Key(records(name)).Start(0).Stop(-1).Build()).AsStrSlice()
	if err != nil {
		return nil, err
	}
	all := make([]Record, len(texts))
	for i, text := range texts {
		if _, err := fmt.Sscan(text, &all[i].Token, &all[i].Value, &all[i].Seen); err != nil {
			return nil, fmt.Errorf("record %q of register %s: %w", text, name, err)
		}
	}
	return all, nil
}

// records returns the key of a register's records.
func records(name Name) string { return name.String() + ".records" }

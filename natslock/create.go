package natslock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rest"
)

func checkReplicas(n int) error {
	if !slices.Contains([]int{1, 3, 5}, n) {
		return fmt.Errorf("%w: a stream on %d servers (want 1, 3 or 5)", driver.ErrInvalid, n)
	}
	return nil
}

// config is the configuration of the stream.
func (s *Store) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        s.opts.Stream,
		Description: "locks of Holdfast",
		Subjects:    []string{s.register.records() + ">"},
		Storage:     jetstream.FileStorage,
		Replicas:    s.opts.Replicas,
		// A sequence of a deleted stream must not return as a version.
		FirstSeq:          uint64(time.Now().UnixMicro()),
		MaxMsgsPerSubject: 1,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        -1,
		Discard:           jetstream.DiscardOld, // of a subject
		DenyDelete:        true,
		DenyPurge:         true,
		AllowMsgTTL:       true,
		RePublish:         &jetstream.RePublish{Source: s.register.records() + ">", Destination: s.register.changes() + ">"},
	}
}

// Create implements [driver.Creator]. Create makes the stream, unless there is one. Check
// tells whether a stream that was there has the right settings.
func (s *Store) Create(ctx context.Context) error {
	config := s.config()
	_, err := insist(ctx, func(ctx context.Context) (jetstream.Stream, error) {
		return s.register.js.CreateStream(ctx, config)
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

// try is how long one request about the stream may take. Servers without a leader drop such
// requests.
const try = 3 * time.Second

// insist repeats a request that has no answer until ctx ends. For the length of a try, insist
// also repeats a request for which servers are missing: a server that has just started may count
// as away for a moment.
func insist[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	for began := time.Now(); ; {
		one, cancel := context.WithTimeout(ctx, try)
		got, err := do(one)
		cancel()
		switch refused := (*jetstream.APIError)(nil); {
		case err == nil || ctx.Err() != nil:
			return got, err
		case errors.Is(err, context.DeadlineExceeded):
		case errors.As(err, &refused) && refused.ErrorCode == noPeers && time.Since(began) < try:
			_ = rest.For(ctx, 50*time.Millisecond)
		default:
			return got, err
		}
	}
}

// noPeers is the code of an answer that too few servers can keep the stream.
const noPeers = 10005

// Schema implements [driver.Creator]. The statement is a command of the nats CLI.
func (s *Store) Schema() []string {
	text, err := json.Marshal(s.config())
	if err != nil {
		panic(err) // no value of a configuration fails
	}
	return []string{fmt.Sprintf("nats request '$JS.API.STREAM.CREATE.%s' '%s'", s.opts.Stream, text)}
}

// earliest is a time in microseconds before the first release.
const earliest = 1_600_000_000_000_000

// Check implements [driver.Checker]. It compares the stream with the settings of Create. A
// missing stream, or a stream that cannot keep locks, is [driver.ErrInvalid].
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	stream, err := insist(ctx, func(ctx context.Context) (jetstream.Stream, error) {
		return s.register.js.Stream(ctx, s.opts.Stream)
	})
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return nil, fmt.Errorf("%w: %w: run holdfast init, or Create", driver.ErrInvalid, err)
	case err != nil:
		return nil, err
	}
	info, want := stream.CachedInfo(), s.config()
	got := info.Config
	fix := "delete the stream while nobody holds a lock, and run holdfast init"
	switch {
	case !slices.Equal(got.Subjects, want.Subjects):
		return nil, fmt.Errorf("%w: stream %s has the subjects %s, so that no record arrives (want %s)", driver.ErrInvalid, got.Name, strings.Join(got.Subjects, " "), want.Subjects[0])
	case !got.AllowMsgTTL:
		return nil, fmt.Errorf("%w: stream %s refuses messages with a TTL: set allow_msg_ttl, for which the servers must be 2.11 or later", driver.ErrInvalid, got.Name)
	case got.Sealed:
		return nil, fmt.Errorf("%w: stream %s is sealed: %s", driver.ErrInvalid, got.Name, fix)
	case got.Retention != want.Retention:
		return nil, fmt.Errorf("%w: stream %s removes messages that its consumers have seen (retention): %s", driver.ErrInvalid, got.Name, fix)
	case got.SubjectTransform != nil:
		return nil, fmt.Errorf("%w: stream %s stores records under other subjects (subject_transform): remove the transform", driver.ErrInvalid, got.Name)
	case got.NoAck:
		return nil, fmt.Errorf("%w: stream %s does not answer (no_ack): set no_ack to false", driver.ErrInvalid, got.Name)
	}
	warn := func(wrong bool, format string, args ...any) {
		if wrong {
			warnings = append(warnings, "stream "+got.Name+" "+fmt.Sprintf(format, args...))
		}
	}
	warn(got.Storage != want.Storage, "is in memory, and loses all locks if its servers restart: %s", fix)
	warn(got.Replicas == 1 && s.register.conn.ConnectedClusterName() != "", "is on one server of a cluster, and is away when that server is: use replicas=3")
	warn(got.MaxMsgsPerSubject != 1, "keeps %d messages of each key (max_msgs_per_subject): set 1", got.MaxMsgsPerSubject)
	warn(got.MaxMsgs > 0, "drops the locks of a key when it has %d messages (max_msgs): set -1", got.MaxMsgs)
	warn(got.MaxBytes > 0, "drops or refuses locks when it has %d bytes (max_bytes): set -1", got.MaxBytes)
	warn(got.MaxMsgSize > 0, "refuses records of more than %d bytes, which long queues have (max_msg_size): set -1", got.MaxMsgSize)
	warn(got.PersistMode != want.PersistMode, "acknowledges changes before they are written (persist_mode), and loses locks if its server is killed: %s", fix)
	warn(got.SubjectDeleteMarkerTTL > 0, "leaves a marker for %v in place of an expired record (subject_delete_marker_ttl), and nobody can lock the key meanwhile: set 0", got.SubjectDeleteMarkerTTL)
	warn(got.MaxAge > 0, "drops locks that are not renewed for %v (max_age): set 0", got.MaxAge)
	warn(got.Discard != want.Discard, "refuses changes when it is full (discard): set old")
	warn(!got.DenyPurge || !got.DenyDelete, "lets messages be purged or deleted, which ends locks: set deny_purge and deny_delete")
	warn(got.AllowRollup, "lets a message replace all others (allow_rollup_hdrs), which ends locks: set false")
	warn(got.Mirror != nil || len(got.Sources) > 0, "copies messages of another stream, which may replace locks: %s", fix)
	warn(got.FirstSeq < earliest, "begins with sequence %d: if somebody deletes and makes the stream again, a late change may replace a new lock. Let first_seq be the time in microseconds: %s", got.FirstSeq, fix)
	warn(got.RePublish == nil || got.RePublish.Source != want.RePublish.Source || got.RePublish.Destination != want.RePublish.Destination || got.RePublish.HeadersOnly,
		"does not report changes, so that waiters wait for a second longer: set republish from %s to %s", want.RePublish.Source, want.RePublish.Destination)
	warn(!s.opts.Synced, "may lose locks when a machine loses power, unless all servers run with sync_interval: always, which a client cannot see: set it, and say so by synced=true in the URL")
	return append(s.warnings, warnings...), nil
}

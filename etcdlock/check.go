package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

// Check implements [driver.Checker]. It warns of members that do not answer, are too
// old, or have raised an alarm. It also warns of a password sent to members
// unencrypted. Without the right to read and write its keys, the store cannot keep
// locks.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	members := s.client.Endpoints()
	if s.client.Password != "" {
		var plain []string
		for _, member := range members {
			if host, ok := strings.CutPrefix(member, "http://"); ok {
				plain = append(plain, host)
			}
		}
		warnings = hosturl.Plain(plain, "use etcds://")
	}
	found := make([]string, len(members))
	var all sync.WaitGroup
	for i, member := range members {
		all.Go(func() { found[i] = s.examine(ctx, member) })
	}
	all.Wait()
	for _, f := range found {
		if f != "" {
			warnings = append(warnings, f)
		}
	}
	return warnings, nil
}

// probe finds out whether the user may read and write, and writes nothing.
func (s *Store) probe(ctx context.Context) error {
	name := s.names.prefix + "probe/"
	_, err := s.do(ctx, txn{
		when: []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(name), "<", 0)}, // never
		then: []clientv3.Op{clientv3.OpPut(name, "")},
		els:  []clientv3.Op{clientv3.OpGet(name, clientv3.WithPrefix())},
	})
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case errors.Is(err, rpctypes.ErrNoSpace): // It would have written.
		return nil
	}
	return err
}

// examine returns what is wrong with a member, "" if nothing is wrong.
func (s *Store) examine(ctx context.Context, member string) string {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	r, err := s.client.Status(ctx, member)
	switch {
	case err != nil:
		return fmt.Sprintf("%s does not answer (%v): the cluster goes on only while most of its members do", member, err)
	case old(r.Version):
		return fmt.Sprintf("%s runs etcd %s, which nobody has tested with Holdfast: use 3.4 or later", member, r.Version)
	case len(r.Errors) > 0:
		return fmt.Sprintf("%s has raised an alarm (%s): while its space is exceeded nothing new can be locked; compact and defragment it, then disarm the alarm", member, strings.Join(r.Errors, ", "))
	case r.Leader == 0:
		return fmt.Sprintf("%s follows no leader: it keeps no locks until it does", member)
	}
	return ""
}

// old reports whether a version is before 3.4.
func old(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err != nil || err2 != nil || a < 3 || a == 3 && b < 4
}

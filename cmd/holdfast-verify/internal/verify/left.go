package verify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/rest"
)

// keep is how long a store may keep remains, regardless of the TTL. If a proof of the server is
// interrupted, Redis and Memcached keep its claims for this long. Redis keeps a queue without
// requests for half as long, and etcd the ids of abandoned claims for up to 20 s.
const keep = time.Minute

// count looks into the servers, because a store shows only claims that count. count waits a
// while for claims to go.
func (s *scene) count(ctx context.Context) {
	look := s.target.engine.left
	if look == nil || len(s.failures) > 0 { // a failure may be why something is there
		return
	}
	s.progress("%s: looking into the servers", s.target.name)
	ctx, cancel := context.WithTimeout(ctx, s.lapse()+slack)
	defer cancel()
	for {
		err := s.host.Try(func() { s.litter = look(keep + s.lapse()) })
		s.fail("look into the servers", err)
		if err != nil || len(s.litter) == 0 || rest.For(ctx, 100*time.Millisecond) != nil {
			return
		}
	}
}

// still reports the things that a server still has; told names one on each line.
func still(what, told string) (left []string) {
	for line := range strings.Lines(told) {
		if line = strings.TrimSpace(line); line != "" {
			left = append(left, fmt.Sprintf("the server still has the %s %s", what, line))
		}
	}
	return left
}

package verify

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// keep is how long a store may keep a little of what was asked of it, whatever the
// TTL: Redis has a line that nobody asks about any more for so long, and etcd the ids
// of claims that were given up for up to 20 s.
const keep = 30 * time.Second

// count looks into the servers, where no store hides what it does not count. It
// waits a while for what is still going.
func (s *scene) count(ctx context.Context) {
	look := s.target.engine.left
	if look == nil || len(s.failures) > 0 { // which may be why something is there
		return
	}
	s.progress("%s: looking into the servers", s.target.name)
	ctx, cancel := context.WithTimeout(ctx, lapse(s.TTL)+slack)
	defer cancel()
	for {
		err := s.host.Try(func() { s.litter = look(keep + lapse(s.TTL)) })
		s.fail("look into the servers", err)
		if err != nil || len(s.litter) == 0 || !sleep(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// still are what a server has told of what it still has, one a line.
func still(what, told string) (left []string) {
	for line := range strings.Lines(told) {
		if line = strings.TrimSpace(line); line != "" {
			left = append(left, fmt.Sprintf("the server still has the %s %s", what, line))
		}
	}
	return left
}

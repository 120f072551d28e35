package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/child"
)

// A process is a server process, as the parent sees it.
type process struct {
	name string
	url  string // where the server listens
	*child.Process
}

// The limits only end what hangs. On a busy machine, a healthy server may need seconds.
const (
	startTime = time.Minute // for a server to print where the server listens
	stopTime  = time.Minute // for a server to end by itself
)

// start starts a server process and sends the job to the process. When ctx ends, the
// process is killed. The caller must call await next.
func (c Config) start(ctx context.Context, j job) (*process, error) {
	started, err := child.Start(ctx, c.Command, c.Stderr)
	if err != nil {
		return nil, err
	}
	p := &process{name: j.Name, Process: started}
	if err := json.NewEncoder(p.In).Encode(j); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s takes no job: %w", j.Name, err)
	}
	return p, nil
}

// await waits until the server listens.
func (p *process) await() error {
	timer := time.AfterFunc(startTime, p.kill)
	defer timer.Stop()
	line, err := p.Out.ReadString('\n')
	p.url = strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(p.url, "http://") {
		return fmt.Errorf("%s did not start: it says %q instead of where it listens (%v)", p.name, p.url, err)
	}
	return nil
}

// stop closes the input of the server, which makes the server end, and waits for the end.
func (p *process) stop() error {
	p.In.Close()
	timer := time.AfterFunc(stopTime, p.kill)
	defer timer.Stop()
	if err := p.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

func (p *process) kill() { p.Cmd.Process.Kill() }

// A fleet is all servers of a round.
type fleet []*process

// startFleet starts n servers with the same job, each with a separate name, and waits
// until all servers listen.
func (c Config) startFleet(ctx context.Context, n int, j job) (f fleet, err error) {
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	for i := range n {
		j.Name = fmt.Sprintf("server %d", i+1)
		p, err := c.start(ctx, j)
		if err != nil {
			return f, err
		}
		f = append(f, p)
	}
	for _, p := range f {
		if err := p.await(); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f fleet) urls() (all []string) {
	for _, p := range f {
		all = append(all, p.url)
	}
	return all
}

// stop ends all servers and returns the first error.
func (f fleet) stop() (first error) {
	for _, p := range f {
		p.In.Close()
	}
	for _, p := range f {
		if err := p.stop(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/worker"
	"github.com/holdfast-go/holdfast/internal/child"
)

// A process is one life of a worker, as the parent sees it.
type process struct {
	job     worker.Job
	history *history.Writer // of the parent
	*child.Process
	ordered atomic.Int64  // when it was about to be killed, 0 if it was not
	gone    chan struct{} // closed when the process has ended, and the history says how
}

// start starts a worker, and returns when the worker is ready. The worker is killed when
// ctx ends.
func (c Config) start(ctx context.Context, parent *history.Writer, j worker.Job) (*process, error) {
	born := history.Event{At: history.Now(), Kind: history.Born}
	started, err := child.Start(ctx, c.Command, c.Stderr)
	if err != nil {
		return nil, err
	}
	p := &process{job: j, history: parent, Process: started, gone: make(chan struct{})}
	p.tell(born)
	err = p.await()
	go p.watch(err == nil)
	if err != nil {
		p.end()
		return nil, fmt.Errorf("%w (%s)", err, p.ProcessState)
	}
	return p, nil
}

// watch waits for the end of the process and records how the process ended.
func (p *process) watch(ready bool) {
	defer close(p.gone)
	err := p.Wait()
	died := history.Event{Kind: history.Died}
	switch since := p.ordered.Load(); {
	case !ready:
		died.Note = check.Unready
	case since > 0 && killed(p.ProcessState):
		died.Since, died.Note = since, check.Killed
	case err != nil:
		died.Note = err.Error()
	}
	p.tell(died)
}

// await sends the worker its job and waits until the worker is ready.
func (p *process) await() error {
	timer := time.AfterFunc(worker.StartTime(p.job.Workload.TTL), func() { p.Cmd.Process.Kill() })
	defer timer.Stop()
	err := json.NewEncoder(p.In).Encode(p.job)
	if err == nil {
		_, err = p.Out.ReadString('\n')
	}
	if err != nil {
		return fmt.Errorf("%s did not start: %w", p, err)
	}
	return nil
}

func (p *process) String() string { return fmt.Sprintf("worker %d.%d", p.job.Worker, p.job.Life) }

func (p *process) tell(e history.Event) {
	e.Worker, e.Life = p.job.Worker, p.job.Life
	if e.At == 0 {
		e.At = history.Now()
	}
	p.history.Add(e)
}

// begin lets the worker begin.
func (p *process) begin() error {
	_, err := io.WriteString(p.In, "go\n")
	return err
}

// setClock sets the worker's clock ahead of the right time, or behind it.
func (p *process) setClock(by time.Duration) error {
	_, err := fmt.Fprintln(p.In, by)
	return err
}

// kill ends the worker as kill -9 does, and returns when the worker has ended.
func (p *process) kill() {
	p.ordered.Store(history.Now())
	p.Cmd.Process.Kill()
	<-p.gone
}

// end lets the worker end by itself, and waits for the end.
func (p *process) end() {
	p.In.Close()
	timer := time.AfterFunc(worker.StopTime(p.job.Workload.TTL), func() { p.Cmd.Process.Kill() })
	defer timer.Stop()
	<-p.gone
}

// over reports whether the worker has ended, as far as can be seen. The system may take a
// moment to report the end.
func (p *process) over() bool {
	select {
	case <-p.gone:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

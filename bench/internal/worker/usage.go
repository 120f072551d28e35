package worker

import (
	"runtime"
	"time"
)

// A Usage is the resource usage of a process.
type Usage struct {
	Memory     int64 // bytes of heap and of stacks
	Goroutines int
	CPU        time.Duration // since the start of the process
}

func measure() (Usage, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	spent, err := cpu()
	return Usage{
		Memory:     int64(m.HeapAlloc + m.StackInuse),
		Goroutines: runtime.NumGoroutine(),
		CPU:        spent,
	}, err
}

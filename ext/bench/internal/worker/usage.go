package worker

import (
	"runtime"
	"time"
)

// A Usage is what a process uses.
type Usage struct {
	Memory     int64 // bytes of heap and of stacks
	Goroutines int
	CPU        time.Duration // since it began
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

package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
)

// A Writer writes the events of a process. Many goroutines may call its methods.
type Writer struct {
	worker, life int
	file         *os.File

	mu  sync.Mutex
	err error // the joined errors
}

// Create makes the file of a process.
func Create(path string, worker, life int) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{worker: worker, life: life, file: file}, nil
}

// Add writes an event. Close returns the errors of Add.
func (w *Writer) Add(e Event) {
	if w.life > 0 {
		e.Worker, e.Life = w.worker, w.life
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err != nil {
		w.mu.Lock()
		w.err = errors.Join(w.err, err)
		w.mu.Unlock()
	}
}

// Close closes the file, and returns the errors since Create.
func (w *Writer) Close() error {
	err := w.file.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, err)
}

// Read yields the events of a file. A text after the last line break comes from a killed
// process, and is left out.
func Read(path string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer file.Close()
		read(file, path, yield)
	}
}

func read(from io.Reader, name string, yield func(Event, error) bool) {
	lines := bufio.NewReaderSize(from, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var e Event
		if err == nil {
			err = json.Unmarshal(bytes.TrimSpace(line), &e)
		}
		if err != nil {
			yield(e, fmt.Errorf("%s:%d: %w", name, n, err))
			return
		}
		if !yield(e, nil) {
			return
		}
	}
}

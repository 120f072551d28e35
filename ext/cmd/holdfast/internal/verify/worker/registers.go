package worker

import (
	"errors"
	"path/filepath"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/register"
	"github.com/holdfast-go/holdfast/once"
)

// A pair is what a key guards: two registers of which one checks tokens.
type pair struct{ fenced, plain *register.Register }

// registers are the pairs of all keys, and the records of effects.
type registers struct {
	pairs   map[string]pair
	effects *once.File
}

// FencedFile and PlainFile name the registers of a key in the folder of a run.
func FencedFile(key string) string { return key + ".fenced" }
func PlainFile(key string) string  { return key + ".plain" }

func openRegisters(j Job) (*registers, error) {
	owner := uint32(j.Worker)<<16 | uint32(j.Life)
	r := &registers{pairs: make(map[string]pair), effects: &once.File{Dir: filepath.Join(j.Registers, "effects")}}
	for _, key := range j.Workload.Guarded() {
		fenced, err := register.Open(filepath.Join(j.Registers, FencedFile(key)), true, owner)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		plain, err := register.Open(filepath.Join(j.Registers, PlainFile(key)), false, owner)
		if err != nil {
			return nil, errors.Join(err, fenced.Close(), r.close())
		}
		r.pairs[key] = pair{fenced, plain}
	}
	return r, nil
}

func (r *registers) close() (err error) {
	for _, p := range r.pairs {
		err = errors.Join(err, p.fenced.Close(), p.plain.Close())
	}
	return err
}

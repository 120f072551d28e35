package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// TestPictures prints tables as a run does, with a side that is not in all benches and
// one that locks nothing, and reads them again.
func TestPictures(t *testing.T) {
	st := stores.All()[slices.IndexFunc(stores.All(), func(st stores.Store) bool { return st.Name == "redis" })]
	var text strings.Builder
	text.WriteString("go1.26.8, linux/amd64, 7 processors, 10 rounds.\n\n### " + st.Title + "\n\nRedis: of some version.\n\n")
	for i, b := range benches {
		var all []result
		for n, side := range st.Sides {
			if !b.measures(side) {
				continue
			}
			r := result{side: side}
			tally := worker.Tally{Counts: []int{100 * (i + 1), 50 * (i + 1)}, Times: []time.Duration{time.Duration(1000*i + n + 1)}}
			tally.Hung = 1
			r.add(b, tally, usage{took: time.Second}, scale{each: time.Second})
			all = append(all, r)
		}
		printResults(&text, b, st, full, all)
	}
	whole, small := pictures(text.String())
	if len(whole.Groups) != 1 || len(whole.Groups[0].Rows) != len(st.Sides) || !strings.Contains(whole.Subtitle, "with 7 processors") {
		t.Fatalf("the picture %q has %v, want one store with %d sides", whole.Subtitle, whole.Groups, len(st.Sides))
	}
	us := whole.Groups[0].Rows[0]
	if us.Bars[0].P50 != 1 || us.Bars[1].P50 != 1000 || us.Bars[2].P50 != 3000 || us.Bars[1].Label != "1.00 µs" {
		t.Errorf("bars of Holdfast: %v", us.Bars)
	}
	if want := []string{"600", "0.50", "750", "0.50"}; !slices.Equal(us.Facts, want) {
		t.Errorf("facts of Holdfast: %q, want %q", us.Facts, want)
	}
	patient := slices.IndexFunc(st.Sides, func(s stores.Side) bool { return s.Patient })
	if them := whole.Groups[0].Rows[patient]; them.Bars[0].P50 != 0 || them.Bars[1].P50 == 0 {
		t.Errorf("bars of the patient side: %v", them.Bars)
	}
	if len(small.Groups) != 1 || len(small.Groups[0].Rows) != len(smallRows) {
		t.Fatalf("the small picture has %v, want rows of %q", small.Groups, smallRows)
	}
	for i, r := range small.Groups[0].Rows {
		if r.Name != smallRows[i] || len(r.Facts) != len(small.Facts) {
			t.Errorf("row %d of the small picture is %v, want %s with %d facts", i, r, smallRows[i], len(small.Facts))
		}
	}
}

// TestPicturesOfTheDocuments wants the pictures in docs/results to show the tables there:
// "go run ./bench -draw=docs/results" draws them again.
func TestPicturesOfTheDocuments(t *testing.T) {
	saved := filepath.Join("..", "docs", "results")
	text, err := os.ReadFile(filepath.Join(saved, tablesFile))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, tablesFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), []string{"-draw", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pictureFile, smallFile} {
		want, err1 := os.ReadFile(filepath.Join(dir, name))
		got, err2 := os.ReadFile(filepath.Join(saved, name))
		if err1 != nil || err2 != nil || string(got) != string(want) {
			t.Errorf("%s is not drawn from the tables beside it (%v, %v)", name, err1, err2)
		}
	}
}

func TestDrawNoTables(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"no such file", "has no table"} {
		if err := execute(t.Context(), []string{"-draw", dir}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if err := os.WriteFile(filepath.Join(dir, tablesFile), []byte(tablesHead), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

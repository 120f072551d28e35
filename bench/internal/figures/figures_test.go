package figures

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		all  []float64
		q    float64
		want float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.99, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{4, 1, 3, 2}, 0, 1},
		{[]float64{4, 1, 3, 2}, 1, 4},
		{[]float64{10, 20, 30, 40, 50}, 0.25, 20},
		{[]float64{10, 20}, 0.75, 17.5},
	} {
		if got := Quantile(slices.Clone(test.all), test.q); got != test.want {
			t.Errorf("quantile %v of %v = %v, want %v", test.q, test.all, got, test.want)
		}
	}
	if got := Quantile([]time.Duration{time.Second, 3 * time.Second}, 0.5); got != 2*time.Second {
		t.Errorf("median of one and three seconds = %v", got)
	}
}

func TestQuartiles(t *testing.T) {
	rounds := []float64{5, 1, 4, 2, 3}
	if got, want := Quartiles(rounds), (Spread{2, 3, 4}); got != want {
		t.Errorf("quartiles = %v, want %v", got, want)
	}
	if rounds[0] != 5 {
		t.Error("the order of the rounds is lost")
	}
}

func TestRatio(t *testing.T) {
	// The machine was ten times slower in the second round, for both.
	if got := Ratio([]float64{200, 20, 220}, []float64{100, 10, 100}); got != 2 {
		t.Errorf("ratio = %v, want 2", got)
	}
	if got := Ratio([]float64{1, 6}, []float64{0, 2}); got != 3 {
		t.Errorf("ratio without the round that measured nothing = %v, want 3", got)
	}
	if got := Ratio(nil, nil); !math.IsNaN(got) {
		t.Errorf("ratio of nothing = %v", got)
	}
}

func TestFairness(t *testing.T) {
	for _, test := range []struct {
		counts []int
		want   float64
	}{
		{[]int{5}, 1},
		{[]int{10, 5, 20}, 0.25},
		{[]int{0, 100}, 0},
		{[]int{0, 0}, 1},
		{nil, 1},
	} {
		if got := Fairness(test.counts); got != test.want {
			t.Errorf("fairness of %v = %v, want %v", test.counts, got, test.want)
		}
	}
}

func TestSum(t *testing.T) {
	if got := Sum([]time.Duration{time.Second, 2 * time.Second}); got != 3*time.Second {
		t.Errorf("sum = %v", got)
	}
}

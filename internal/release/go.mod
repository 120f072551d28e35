module github.com/holdfast-go/holdfast/internal/release

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	golang.org/x/mod v0.38.0
)

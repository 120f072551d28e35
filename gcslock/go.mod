module github.com/holdfast-go/holdfast/gcslock

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	golang.org/x/oauth2 v0.36.0
)

require cloud.google.com/go/compute/metadata v0.3.0 // indirect

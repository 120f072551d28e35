module github.com/holdfast-go/holdfast/redislock

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect

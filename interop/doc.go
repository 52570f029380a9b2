// Package interop holds tests only: what this repository sends and receives, against programs that other people wrote. README.md
// says which, and how to run them. They need Linux.
package interop

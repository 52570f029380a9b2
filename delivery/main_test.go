package delivery_test

import (
	"testing"

	"github.com/wholelog/wholelog/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

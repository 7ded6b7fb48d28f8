package main

import (
	"fmt"
	"os"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/hostiletest"
)

// hostileRow reads small states that cause much work, and compares them with honest states of the same size. It
// measures the provider process.
func (b *bench) hostileRow() ([]line, error) {
	var lines []line
	var worst int64 // memory above the honest file, in bytes
	for _, file := range hostiletest.Files() {
		m, err := b.hostilePlans(file)
		if err != nil {
			return nil, err
		}
		here, honest := m[0].providerCPU, m[1].providerCPU
		l := line{name: "hostile: " + file.Name, here: seconds(here), peer: seconds(honest)}
		if len(file.Data) < megabyte {
			l.name += ": at most a second more than an honest file, CPU"
			l.ratio, l.most = (here-honest).Seconds()/time.Second.Seconds(), 1
			worst = max(worst, m[0].provider-m[1].provider)
		} else {
			l.name += ": beside an honest file, CPU"
			l.ratio, l.most = here.Seconds()/honest.Seconds(), 10
		}
		lines = append(lines, l)
	}
	const most = 150_000_000
	return append(lines, line{
		name: "hostile: the most memory above an honest file: beside 150 MB", here: megabytes(worst), peer: megabytes(most),
		ratio: float64(worst) / most, most: 1,
	}), nil
}

func (b *bench) hostilePlans(file hostiletest.File) ([]cost, error) {
	var plans []command
	for i, name := range []string{"hostile", "honest"} {
		data := file.Data
		if i == 1 {
			data = hostiletest.Honest(len(data))
		}
		path := b.path(name + ".tfstate")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, err
		}
		body := "provider \"statecrypt\" {\n  allow_resource_reads = true\n  default { method = \"unencrypted\" }\n}\n"
		if file.Resource {
			body += fmt.Sprintf("data \"statecrypt_resource\" \"s\" {\n  file { path = %q }\n  address = \"x.y\"\n}\n", path)
		} else {
			body += reads(path)
		}
		plan, err := b.terraformPlan(name, body)
		if err != nil {
			return nil, err
		}
		plan.mayFail = file.Refused && name == "hostile"
		plans = append(plans, plan)
	}
	return b.compare(plans...)
}

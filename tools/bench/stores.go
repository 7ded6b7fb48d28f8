package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
)

const inStore = 1000 // number of states in a store

// storesRow rotates all states of a bucket and of a repository. One run has sealed them, so they share a key. It
// compares the CPU time for each state with the derivation of one key.
func (b *bench) storesRow() ([]line, error) {
	enc, err := newEncryption(worded(oldPassphrase))
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(3, 4))
	sealed := func(i int) []byte {
		file, e := enc.State().Encrypt(context.Background(), numbered(i, letters(random, 10_000)))
		err = e
		return file
	}
	objects := &objects{kept: map[string][]byte{}}
	bucket := httptest.NewServer(objects)
	defer bucket.Close()
	for i := range inStore {
		objects.kept["/states/"+flatPath(i)] = sealed(i)
	}
	if err := b.makeStates(b.path("rotated.git"), inStore, flatPath, sealed); err != nil {
		return nil, err
	}
	if err := b.git(b.path("rotated.git"), "", "config", "http.receivepack", "true"); err != nil {
		return nil, err
	}
	server, err := serve(b.dir, 0)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	one, err := b.sealAs("one-key.tfstate", worded(oldPassphrase), state(oneOutput, 10_000))
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, s := range []struct {
		name, block string
		asked       func() int
		most        float64
	}{
		{"S3", bucketBlock(bucket.URL, "any", ""), objects.count, 1},
		{"git", fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = \"any\"\n}\n",
			"http://"+server.address+"/rotated.git"), func() int { return int(server.requests.Swap(0)) }, 1.2},
	} {
		more, err := b.rotateAll(s.name, s.block, one, s.asked, s.most)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// rotateAll rotates the states of a store once, because each run would need a store of its own.
func (b *bench) rotateAll(name, block, one string, asked func() int, most float64) ([]line, error) {
	dir := b.path("rotate_" + name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for file, of := range map[string]string{"old.hcl": oldPassphrase, "new.hcl": passphrase} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(block+"\n"+worded(of)), 0o600); err != nil {
			return nil, err
		}
	}
	statecrypt := func(name string, args ...string) command {
		return command{name: name, dir: dir, env: []string{"GIT_CONFIG_NOSYSTEM=1"}, args: append([]string{b.path("statecrypt")}, args...)}
	}
	m, err := b.compare(statecrypt("help", "help"), statecrypt("verify 1", "verify", "-config", "old.hcl", one))
	if err != nil {
		return nil, err
	}
	asked()
	took, err := b.run(statecrypt("rotate", "rotate", "-from", "old.hcl", "-to", "new.hcl", "-backend", "-prefix", "s"))
	if err != nil {
		return nil, err
	}
	here, peer, requests := took.cpu/inStore, m[1].cpu-m[0].cpu, float64(asked())/inStore
	work := fmt.Sprintf("rotate %d states of 10 kB in %s", inStore, name)
	return []line{
		{name: work + ", for each: beside the derivation of a key, CPU", here: milliseconds(here), peer: milliseconds(peer),
			ratio: here.Seconds() / peer.Seconds(), most: most},
		{name: "the same, requests: beside one", here: fmt.Sprintf("%.1f", requests), peer: "1", ratio: requests},
		{name: "the same, time: beside its CPU", here: milliseconds(took.wall / inStore), peer: milliseconds(here),
			ratio: took.wall.Seconds() / took.cpu.Seconds()},
	}, nil
}

package encryption

import (
	"bytes"
	"encoding/binary"
)

// These parts of a zip archive identify a plan. Their names come from PKWARE's APPNOTE.TXT, 4.3.
// Package archive/zip would also link decompression into every program that opens states.
const (
	localHeader     = "PK\x03\x04" // the signature of the first member, with which an archive begins
	centralHeader   = "PK\x01\x02" // the signature of each member in the list at the end
	endOfDirectory  = "PK\x05\x06"
	sizeOfCentral   = 46 // bytes before the name
	sizeOfDirectory = 22 // bytes of the end before the comment
)

// planMember holds the plan in the archive that Terraform and OpenTofu write.
const planMember = "tfplan"

// isPlan reports whether file is a zip archive with a plan in it. It reads the list of members
// and decompresses none.
func isPlan(file []byte) bool {
	if !beginsAsArchive(file) {
		return false
	}
	end := bytes.LastIndex(file, []byte(endOfDirectory))
	if end < 0 || len(file)-end < sizeOfDirectory {
		return false
	}
	field := func(at int) int { return int(binary.LittleEndian.Uint16(file[end+at:])) }
	size, start := binary.LittleEndian.Uint32(file[end+12:]), binary.LittleEndian.Uint32(file[end+16:])
	return int64(start)+int64(size) == int64(end) && end+sizeOfDirectory+field(20) == len(file) &&
		hasMember(file[start:end], field(10), planMember)
}

// hasMember reports whether a list of exactly that many headers contains the wanted name.
func hasMember(list []byte, members int, wanted string) bool {
	found := false
	for range members {
		if len(list) < sizeOfCentral || !bytes.HasPrefix(list, []byte(centralHeader)) {
			return false
		}
		field := func(at int) int { return int(binary.LittleEndian.Uint16(list[at:])) }
		name := sizeOfCentral + field(28)
		size := name + field(30) + field(32)
		if size > len(list) {
			return false
		}
		found = found || string(list[sizeOfCentral:name]) == wanted
		list = list[size:]
	}
	return found && len(list) == 0
}

func beginsAsArchive(file []byte) bool { return bytes.HasPrefix(file, []byte(localHeader)) }

// beginsAsPlan reports whether the first member of an archive is a plan, as in the archives
// that Terraform and OpenTofu write.
func beginsAsPlan(file []byte) bool {
	const sizeOfLocal = 30 // bytes before the name
	return beginsAsArchive(file) && bytes.HasPrefix(file[min(sizeOfLocal, len(file)):], []byte(planMember)) &&
		binary.LittleEndian.Uint16(file[sizeOfLocal-4:]) == uint16(len(planMember))
}

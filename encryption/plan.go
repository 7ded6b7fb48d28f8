package encryption

import (
	"bytes"
	"encoding/binary"
)

// These are the parts of a zip archive that identify a plan; see section 4.3 of PKWARE's
// APPNOTE.TXT. Package archive/zip is not used, because it would link decompression into every
// program that opens states.
const (
	localHeader     = "PK\x03\x04" // signature of a member; an archive begins with it
	centralHeader   = "PK\x01\x02" // signature of a member in the list at the end
	endOfDirectory  = "PK\x05\x06"
	sizeOfCentral   = 46 // bytes before the name of a member in the list
	sizeOfDirectory = 22 // bytes at the end of the archive, before the comment
)

// planMember is the archive member in which Terraform and OpenTofu store the plan.
const planMember = "tfplan"

// isPlan reports whether file is a zip archive that contains a plan. It reads the list of members
// and decompresses nothing.
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

// hasMember reports whether list consists of exactly this number of headers, one of which has the
// wanted name.
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

// beginsAsPlan reports whether the first member of an archive is a plan, as in the archives that
// Terraform and OpenTofu write.
func beginsAsPlan(file []byte) bool {
	const sizeOfLocal = 30 // bytes of the header before the name
	return beginsAsArchive(file) && bytes.HasPrefix(file[min(sizeOfLocal, len(file)):], []byte(planMember)) &&
		binary.LittleEndian.Uint16(file[sizeOfLocal-4:]) == uint16(len(planMember))
}


-- What is done with it. UDP port 4791 comes here first: MRC and the opcodes of selective queue pairs, which Wireshark does
-- not know, are shown by this alone; all else goes to Wireshark's own dissector, and behind it comes what is of collectives.

local proto = Proto("incline", "Incline: collectives in the network, MRC, selective RC")
if set_plugin_info then
	set_plugin_info({version = facts.version, description = "Incline", author = "The Incline authors"})
end

local fields = {
	op = ProtoField.string("incline.op", "Operation"),
	payload = ProtoField.uint32("incline.payload", "Payload bytes"),
	trimmed = ProtoField.bool("incline.trimmed", "Trimmed by a switch"),
	own_ev = ProtoField.uint32("incline.own_ev", "EV of this packet", base.HEX),
	refused = ProtoField.string("incline.refused", "Refused"),
	icrc_value = ProtoField.uint32("incline.icrc_value", "ICRC (not checked)", base.HEX),
}

local function declare(header)
	for _, f in ipairs(header.fields or {}) do
		local name, show = "incline." .. f.name, f.show == "hex" and base.HEX or base.DEC
		if fields[f.name] then -- of another header too
		elseif f.show == "flag" then
			fields[f.name] = ProtoField.bool(name, f.title)
		elseif f.show == "text" then
			fields[f.name] = ProtoField.string(name, f.title)
		elseif f.wide then
			fields[f.name] = ProtoField.uint64(name, f.title, show)
		else
			fields[f.name] = ProtoField.uint32(name, f.title, show)
		end
	end
	if header.other then
		declare(header.other)
	end
end

declare(facts.bth)
declare(facts.control)
declare(facts.ina)
for _, known in ipairs({facts.mrc, facts.roce}) do
	for _, header in pairs(known) do
		declare(header)
	end
end
proto.fields = fields

-- Of the packet below. There may be several, of tunnels: the last is the innermost.
local below = {v4 = Field.new("ip.dsfield.dscp"), v6 = Field.new("ipv6.tclass.dscp"), flow = Field.new("ipv6.flow")}

local function last(field)
	local all = {field()}
	local info = all[#all]
	return info and tonumber(tostring(info.value)) or nil
end

local function is_v6(pinfo)
	return tostring(pinfo.net_src):find(":", 1, true) ~= nil
end

-- Bits of a header at base: a number, or UInt64 of wide fields; nil: the capture has not all of it.
local function read(tvb, base_at, f)
	local at = base_at + f.at
	if at + f.len > tvb:captured_len() then
		return nil, nil
	end
	local range = tvb(at, f.len)
	if f.little then
		return f.len > 4 and range:le_uint64() or range:le_uint(), range
	end
	return range:bitfield(f.bit, f.bits), range
end

-- Adds the fields of a header that lie within its first `there` bytes. Returns {name: number}.
local function add(tree, tvb, base_at, header, there)
	local values = {}
	for _, f in ipairs(header.fields) do
		local v, range = read(tvb, base_at, f)
		if v ~= nil and f.need <= there then
			if f.show == "relative" then
				v = ((values.psn or 0) + (v >= 2 ^ (f.bits - 1) and v - 2 ^ f.bits or v)) % facts.psns
			elseif f.scale then
				v = v * f.scale
			end
			values[f.name] = v
			if f.show == "flag" then
				tree:add(fields[f.name], range, v ~= 0)
			elseif f.show == "text" then
				tree:add(fields[f.name], range, facts.words[f.words][v] or "?")
			else
				tree:add(fields[f.name], range, v)
			end
		end
	end
	return values
end

-- Why a header is none, as whoever receives it would say; nil.
local function refused(tvb, base_at, header)
	for _, m in ipairs(header.must) do
		local v = read(tvb, base_at, m)
		if v ~= nil and v ~= m.is then
			return m.why
		end
	end
	return nil
end

local function variant(tvb, header)
	if header and header.other and header.flag.at < tvb:captured_len() and
			tvb(header.flag.at, 1):bitfield(header.flag.bit, 1) == 1 then
		return header.other
	end
	return header
end

local function of_bth(tvb, name)
	for _, f in ipairs(facts.bth.fields) do
		if f.name == name then
			return (read(tvb, 0, f))
		end
	end
end

-- Without padding and ICRC; nil: the pad count is wrong.
local function payload_len(len, header_len, pad)
	local rest = len - header_len - facts.icrc
	if rest < 0 or rest % 4 ~= 0 or pad > rest then
		return nil
	end
	return rest - pad
end

-- ---- collectives ----

local function add_control(tree, tvb, pinfo, known)
	local header = facts.control
	local range_len = header.len
	if known.imm + range_len > tvb:captured_len() or refused(tvb, known.imm, header) then
		return
	end
	local sub = tree:add(proto, tvb(known.imm, range_len), "Incline, control message of a collective")
	add(sub, tvb, known.imm, header, range_len)
	pinfo.cols.protocol:set("INC")
end

local function add_ina(tree, tvb, pinfo, known)
	local header = facts.ina
	if known.pay + header.len > tvb:captured_len() or refused(tvb, known.pay, header) then
		return
	end
	add(tree:add(proto, tvb(known.pay, header.len), "NetReduce"), tvb, known.pay, header, header.len)
	pinfo.cols.protocol:set("NetReduce")
end

local function add_payload(tree, tvb, pinfo, known, len)
	if known.imm and len == facts.control.pay and known.imm + facts.control.len == known.pay + len then
		add_control(tree, tvb, pinfo, known)
	end
	if known.ina and len >= facts.ina.len then
		add_ina(tree, tvb, pinfo, known)
	end
end

-- ---- what Wireshark does not know ----

local function begin(tree, tvb, pinfo, name, op)
	local sub = tree:add(proto, tvb(), name .. ", " .. op)
	sub:add(fields.op, tvb(0, 1), op)
	pinfo.cols.protocol:set(name)
	return sub, add(sub, tvb, 0, facts.bth, facts.bth.len)
end

local function finish(sub, tvb, pinfo, op, qp, values, payload, header_len)
	local info = string.format("%s QP=0x%06x", op, qp or 0)
	if values.psn then
		info = info .. string.format(" PSN=%u", values.psn)
	end
	pinfo.cols.info:set(info)
	if payload then
		local there = math.min(payload, math.max(tvb:captured_len() - header_len, 0))
		sub:add(fields.payload, tvb(math.min(header_len, tvb:captured_len()), there), payload)
	end
end

local function add_icrc(sub, tvb)
	local at = tvb:reported_len() - facts.icrc
	if at + facts.icrc <= tvb:captured_len() then
		sub:add(fields.icrc_value, tvb(at, facts.icrc))
	end
end

local function refuse(tree, tvb, pinfo, name, why)
	local sub = tree:add(proto, tvb(), name .. ", refused: " .. why)
	sub:add(fields.refused, tvb(0, 1), why)
	pinfo.cols.protocol:set(name)
	pinfo.cols.info:set("refused: " .. why)
end

local function why_not_mrc(tvb, header, len, trimmed)
	if not header then
		return "mrc_opcode"
	end
	if not header.data then
		local whole = header.len + facts.icrc
		if trimmed then
			return "mrc_trimmed"
		elseif len ~= whole then
			return len < whole and "mrc_short" or "mrc_long"
		end
	elseif not trimmed and len < header.len + facts.icrc then
		return "mrc_short"
	elseif not trimmed and not payload_len(len, header.len, of_bth(tvb, "pad")) then
		return "mrc_pad"
	end
	return refused(tvb, 0, header)
end

local function dissect_mrc(tvb, pinfo, tree, opcode)
	local header, len = variant(tvb, facts.mrc[opcode]), tvb:reported_len()
	local v6 = is_v6(pinfo)
	local trimmed = facts.trimmed[last(v6 and below.v6 or below.v4) or -1]
	local why = why_not_mrc(tvb, header, len, trimmed)
	if not why and not header.endpoint and of_bth(tvb, "qp") == facts.endpoint_qp then
		why = "mrc_qpn"
	end
	if why then
		return refuse(tree, tvb, pinfo, "MRC", why)
	end
	local sub, bth = begin(tree, tvb, pinfo, "MRC", header.op)
	local values = add(sub, tvb, 0, header, trimmed and len or header.len)
	if trimmed then
		sub:add(fields.trimmed, tvb(), true)
	else
		add_icrc(sub, tvb)
	end
	local ev = (v6 and (last(below.flow) or 0) % 65536 * facts.ev_flow or 0) + pinfo.src_port * facts.ev_port
	sub:add(fields.own_ev, tvb(), ev)
	local payload = nil
	if header.data and trimmed then
		payload = len >= header.len and 0 or nil
	elseif header.data then
		payload = payload_len(len, header.len, bth.pad)
	end
	finish(sub, tvb, pinfo, header.op, bth.qp, values, payload, header.len)
end

local function dissect_selective(tvb, pinfo, tree, header)
	local payload = payload_len(tvb:reported_len(), header.len, of_bth(tvb, "pad"))
	local why = refused(tvb, 0, header) or not payload and "roce_short"
	if why then
		return refuse(tree, tvb, pinfo, "SEL", why)
	end
	local sub, bth = begin(tree, tvb, pinfo, "SEL", header.op)
	local values = add(sub, tvb, 0, header, header.len)
	add_icrc(sub, tvb)
	finish(sub, tvb, pinfo, header.op, bth.qp, values, payload, header.len)
	add_payload(tree, tvb, pinfo, header, payload)
end

-- ---- all of it ----

local ports = DissectorTable.get("udp.port")
local theirs = ports:get_dissector(facts.port)

-- What they find malformed they have said in the tree before it comes back as an error. That a capture has not all of a
-- packet would come back past Lua, which does not bear that (after 200 such it takes no call): they see what is there.
local function call_theirs(tvb, pinfo, tree)
	local there = tvb:captured_len()

	if theirs and there > 0 then
		pcall(theirs.call, theirs, there < tvb:reported_len() and tvb(0, there):tvb() or tvb, pinfo, tree)
	end
end

function proto.dissector(tvb, pinfo, tree)
	local opcode = tvb:captured_len() >= facts.bth.len and tvb(0, 1):uint()
	local known = opcode and facts.roce[opcode]

	if opcode and opcode >= facts.mrc_first and opcode <= facts.mrc_last then
		dissect_mrc(tvb, pinfo, tree, opcode)
	elseif known and known.fields then
		dissect_selective(tvb, pinfo, tree, known)
	else
		call_theirs(tvb, pinfo, tree)
		local payload = known and not refused(tvb, 0, facts.bth) and payload_len(tvb:reported_len(), known.pay, of_bth(tvb, "pad"))
		if payload then
			add_payload(tree, tvb, pinfo, known, payload)
		end
	end
	return tvb:captured_len()
end

ports:add(facts.port, proto)

-- The health of a CompressionJob or a Batch in Argo CD, from the conditions that the operator keeps.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is_true(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end

local function answer(health)
  return { status = health, message = status.statusMessage or status.status or "" }
end

if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the operator" }
elseif is_true("Stalled") then
  return answer("Degraded")
elseif is_true("Ready") then
  return answer("Healthy")
elseif is_true("Suspended") then
  return answer("Suspended")
end
return answer("Progressing")

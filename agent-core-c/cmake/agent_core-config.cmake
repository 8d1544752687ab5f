# The target agent_core::agent_core.
#
# A package holds the library for a few cores, in lib/<Rust's name of the core>/. In the sources there
# is none, and cargo builds it: for size, or with AGENT_CORE_PROFILE=c-fast for speed.

if(TARGET agent_core::agent_core)
  return()
endif()

# What Rust calls the core; whoever has another compiler or flags that do not name it says it.
set(_agent_core_target "${AGENT_CORE_TARGET}")
if(NOT _agent_core_target)
  if(CMAKE_C_FLAGS MATCHES "-mcpu=cortex-m" AND NOT CMAKE_C_FLAGS MATCHES "-mfloat-abi=hard")
    set(agent_core_FOUND FALSE)
    set(agent_core_NOT_FOUND_MESSAGE
        "the library takes floats in floating-point registers: compile with -mfloat-abi=hard")
    return()
  elseif(CMAKE_C_FLAGS MATCHES "-mcpu=cortex-m[47]")
    set(_agent_core_target thumbv7em-none-eabihf)
  elseif(CMAKE_C_FLAGS MATCHES "-mcpu=cortex-m33")
    set(_agent_core_target thumbv8m.main-none-eabihf)
  elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(_agent_core_target "${CMAKE_SYSTEM_PROCESSOR}-unknown-linux-gnu")
  elseif(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
    string(REPLACE arm64 aarch64 _agent_core_target "${CMAKE_SYSTEM_PROCESSOR}-apple-darwin")
  else()
    set(agent_core_FOUND FALSE)
    set(agent_core_NOT_FOUND_MESSAGE
        "CMAKE_C_FLAGS name no core that it knows (-mcpu=cortex-m4, -m7 or -m33): set AGENT_CORE_TARGET to Rust's name of it")
    return()
  endif()
endif()

get_filename_component(_agent_core_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(_agent_core_library "${_agent_core_root}/lib/${_agent_core_target}/libagent_core_c.a")

if(NOT EXISTS "${_agent_core_library}")
  find_program(AGENT_CORE_CARGO cargo)
  if(NOT AGENT_CORE_CARGO OR NOT EXISTS "${_agent_core_root}/Cargo.toml")
    set(agent_core_FOUND FALSE)
    set(agent_core_NOT_FOUND_MESSAGE
        "it has no library for ${_agent_core_target}, and nothing to build one with: use the sources, and install cargo")
    return()
  endif()
  if(NOT AGENT_CORE_PROFILE)
    set(AGENT_CORE_PROFILE c-small)
  endif()
  set(_agent_core_options "")
  if(AGENT_CORE_PROFILE STREQUAL "c-small")
    # As xtask has it: two in a hundred smaller.
    set(_agent_core_options -- -Cllvm-args=-inline-threshold=25)
  endif()
  set(_agent_core_folder "${CMAKE_CURRENT_BINARY_DIR}/agent_core-cargo")
  set(_agent_core_library
      "${_agent_core_folder}/${_agent_core_target}/${AGENT_CORE_PROFILE}/libagent_core_c.a")
  # Asked every time: cargo knows what is up to date.
  add_custom_target(
    agent_core_cargo
    COMMAND
      "${AGENT_CORE_CARGO}" rustc --package agent-core-c --lib --crate-type staticlib
      --profile "${AGENT_CORE_PROFILE}" --target "${_agent_core_target}"
      --target-dir "${_agent_core_folder}" ${_agent_core_options}
    WORKING_DIRECTORY "${_agent_core_root}"
    BYPRODUCTS "${_agent_core_library}"
    USES_TERMINAL VERBATIM)
endif()

# Global, for whoever added the folder this one is in.
add_library(agent_core::agent_core STATIC IMPORTED GLOBAL)
set_target_properties(
  agent_core::agent_core
  PROPERTIES IMPORTED_LOCATION "${_agent_core_library}"
             INTERFACE_INCLUDE_DIRECTORIES "${_agent_core_root}/include")
if(TARGET agent_core_cargo)
  add_dependencies(agent_core::agent_core agent_core_cargo)
endif()
if(NOT _agent_core_target MATCHES "-none-")
  # On an operating system it comes with Rust's standard library.
  set_target_properties(agent_core::agent_core PROPERTIES INTERFACE_LINK_LIBRARIES
                                                          "pthread;m;${CMAKE_DL_LIBS}")
endif()
set(agent_core_FOUND TRUE)
